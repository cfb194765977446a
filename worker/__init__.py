"""The worker: Celery takes hints, a supervisor claims jobs, a runner process drives one Chromium for each attempt."""
