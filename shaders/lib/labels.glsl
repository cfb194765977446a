// labels: what targets are. LABELS is one of the numbers below: class numbers, in the first lane of a row, or a value for each output.
#define LABELS_INDEX 1
#define LABELS_VALUES 2
