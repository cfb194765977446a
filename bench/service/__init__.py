"""What the service itself costs: requests, cancellations, stored files, lost workers, and the stages of a job."""
