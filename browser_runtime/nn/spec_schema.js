// The job spec as JSON Schema, and its patterns in words. Generated from texelgrad/spec.py by scripts/write_schema.py; don't edit.
export const specSchema = {
  "$defs": {
    "ActivationLayer": {
      "additionalProperties": false,
      "description": "function(x), element by element; softmax over the last axis.",
      "properties": {
        "function": {
          "description": "relu ...; linear is the identity.",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Function",
          "type": "string"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "activation",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "function"
      ],
      "title": "ActivationLayer",
      "type": "object"
    },
    "Adadelta": {
      "additionalProperties": false,
      "description": "The gradient over its running root mean square, times that of the steps so far.",
      "properties": {
        "eps": {
          "default": 1e-06,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Eps",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 1.0,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "rho": {
          "default": 0.9,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Rho",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "adadelta",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Adadelta",
      "type": "object"
    },
    "Adagrad": {
      "additionalProperties": false,
      "description": "The gradient over the root of the sum of all squares so far.",
      "properties": {
        "eps": {
          "default": 1e-10,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Eps",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 0.01,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "adagrad",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Adagrad",
      "type": "object"
    },
    "Adam": {
      "additionalProperties": false,
      "description": "Adam, bias-corrected.",
      "properties": {
        "beta1": {
          "default": 0.9,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta1",
          "type": "number"
        },
        "beta2": {
          "default": 0.999,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta2",
          "type": "number"
        },
        "eps": {
          "default": 1e-08,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Eps",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 0.001,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "adam",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Adam",
      "type": "object"
    },
    "AdamW": {
      "additionalProperties": false,
      "description": "Adam with decoupled weight decay.",
      "properties": {
        "beta1": {
          "default": 0.9,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta1",
          "type": "number"
        },
        "beta2": {
          "default": 0.999,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta2",
          "type": "number"
        },
        "eps": {
          "default": 1e-08,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Eps",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 0.001,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "adamw",
          "title": "Type",
          "type": "string"
        },
        "weight_decay": {
          "default": 0.01,
          "description": "Shrinks weights by lr weight_decay.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Weight Decay",
          "type": "number"
        }
      },
      "required": [
        "type"
      ],
      "title": "AdamW",
      "type": "object"
    },
    "Add": {
      "additionalProperties": false,
      "description": "Sum of two or more values of one shape: activation(a + b + ...).",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "add",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Add",
      "type": "object"
    },
    "AvgPool1d": {
      "additionalProperties": false,
      "description": "Mean of each window over a sequence; padding is not counted.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "maximum": 1024,
                "minimum": 0,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "size": {
          "maximum": 1024,
          "minimum": 1,
          "title": "Size",
          "type": "integer"
        },
        "stride": {
          "anyOf": [
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to the size.",
          "title": "Stride"
        },
        "type": {
          "const": "avg_pool1d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "size",
        "type"
      ],
      "title": "AvgPool1d",
      "type": "object"
    },
    "AvgPool2d": {
      "additionalProperties": false,
      "description": "Mean of each window; padding is not counted.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "size": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "title": "Size"
        },
        "stride": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to the size.",
          "title": "Stride"
        },
        "type": {
          "const": "avg_pool2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "size",
        "type"
      ],
      "title": "AvgPool2d",
      "type": "object"
    },
    "BatchNorm": {
      "additionalProperties": false,
      "description": "Each channel by its mean and variance over the batch, height and width; running ones in evaluation.\n\nAs PyTorch: running = (1 - momentum) * running + momentum * batch, the variance there over n - 1. A frozen one normalizes by its\nrunning statistics in training too, and leaves them as they are.",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "eps": {
          "default": 1e-05,
          "description": "Added to the variance.",
          "maximum": 1,
          "minimum": 1e-12,
          "title": "Eps",
          "type": "number"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "momentum": {
          "default": 0.1,
          "description": "Share of the new batch in the running statistics, as in PyTorch.",
          "maximum": 1,
          "minimum": 0,
          "title": "Momentum",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "batch_norm",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "BatchNorm",
      "type": "object"
    },
    "Bce": {
      "additionalProperties": false,
      "description": "Binary cross-entropy of each output.",
      "properties": {
        "label_smoothing": {
          "default": 0.0,
          "description": "Moves targets y to (1 - s) y + s / 2.",
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Label Smoothing",
          "type": "number"
        },
        "pos_weight": {
          "anyOf": [
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": 0,
              "type": "number"
            },
            {
              "items": {
                "maximum": 3.4028234663852886e+38,
                "minimum": 0,
                "type": "number"
              },
              "maxItems": 65536,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Of the targets' share of 1: of all outputs, or of each.",
          "title": "Pos Weight"
        },
        "type": {
          "const": "bce",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Bce",
      "type": "object"
    },
    "Checkpoint": {
      "additionalProperties": false,
      "description": "How often the state is saved; null: only the final weights.",
      "properties": {
        "every_steps": {
          "anyOf": [
            {
              "maximum": 2147483647,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "title": "Every Steps"
        }
      },
      "title": "Checkpoint",
      "type": "object"
    },
    "Clip": {
      "additionalProperties": false,
      "description": "Limits of the gradient before each update.",
      "properties": {
        "global_norm": {
          "anyOf": [
            {
              "exclusiveMinimum": 0,
              "maximum": 3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Of the whole gradient.",
          "title": "Global Norm"
        },
        "value": {
          "anyOf": [
            {
              "exclusiveMinimum": 0,
              "maximum": 3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Of each element, by size.",
          "title": "Value"
        }
      },
      "title": "Clip",
      "type": "object"
    },
    "Concat": {
      "additionalProperties": false,
      "description": "Two or more values one after another along their last axis.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "concat",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Concat",
      "type": "object"
    },
    "Constant": {
      "additionalProperties": false,
      "description": "The same learning rate at every step.",
      "properties": {
        "type": {
          "const": "constant",
          "title": "Type",
          "type": "string"
        },
        "warmup_steps": {
          "default": 0,
          "maximum": 2147483647,
          "minimum": 0,
          "title": "Warmup Steps",
          "type": "integer"
        }
      },
      "required": [
        "type"
      ],
      "title": "Constant",
      "type": "object"
    },
    "Conv1d": {
      "additionalProperties": false,
      "description": "Convolution over [length, channels]: conv2d with one row, W [kernel, in / groups, filters].",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "bias_init": {
          "anyOf": [
            {
              "enum": [
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            }
          ],
          "default": "zeros",
          "title": "Bias Init"
        },
        "dilation": {
          "default": 1,
          "maximum": 1024,
          "minimum": 1,
          "title": "Dilation",
          "type": "integer"
        },
        "filters": {
          "maximum": 65536,
          "minimum": 1,
          "title": "Filters",
          "type": "integer"
        },
        "groups": {
          "default": 1,
          "description": "Each joins its share of channels and filters.",
          "maximum": 65536,
          "minimum": 1,
          "title": "Groups",
          "type": "integer"
        },
        "init": {
          "anyOf": [
            {
              "enum": [
                "glorot_uniform",
                "glorot_normal",
                "glorot_truncated_normal",
                "he_uniform",
                "he_normal",
                "he_truncated_normal",
                "lecun_uniform",
                "lecun_normal",
                "lecun_truncated_normal",
                "xavier_uniform",
                "xavier_normal",
                "xavier_truncated_normal",
                "orthogonal",
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to he_uniform for relu and its like, else glorot_uniform.",
          "title": "Init"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "kernel": {
          "maximum": 1024,
          "minimum": 1,
          "title": "Kernel",
          "type": "integer"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "maximum": 1024,
                "minimum": 0,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "stride": {
          "default": 1,
          "maximum": 1024,
          "minimum": 1,
          "title": "Stride",
          "type": "integer"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "conv1d",
          "title": "Type",
          "type": "string"
        },
        "use_bias": {
          "default": true,
          "title": "Use Bias",
          "type": "boolean"
        }
      },
      "required": [
        "type",
        "filters",
        "kernel"
      ],
      "title": "Conv1d",
      "type": "object"
    },
    "Conv2d": {
      "additionalProperties": false,
      "description": "Convolution over [height, width, channels]: activation(x * W + b), W [height, width, in / groups, filters].",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "bias_init": {
          "anyOf": [
            {
              "enum": [
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            }
          ],
          "default": "zeros",
          "title": "Bias Init"
        },
        "dilation": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "default": 1,
          "title": "Dilation"
        },
        "filters": {
          "maximum": 65536,
          "minimum": 1,
          "title": "Filters",
          "type": "integer"
        },
        "groups": {
          "default": 1,
          "description": "Each joins its share of channels and filters.",
          "maximum": 65536,
          "minimum": 1,
          "title": "Groups",
          "type": "integer"
        },
        "init": {
          "anyOf": [
            {
              "enum": [
                "glorot_uniform",
                "glorot_normal",
                "glorot_truncated_normal",
                "he_uniform",
                "he_normal",
                "he_truncated_normal",
                "lecun_uniform",
                "lecun_normal",
                "lecun_truncated_normal",
                "xavier_uniform",
                "xavier_normal",
                "xavier_truncated_normal",
                "orthogonal",
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to he_uniform for relu and its like, else glorot_uniform.",
          "title": "Init"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "kernel": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "title": "Kernel"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "stride": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "default": 1,
          "title": "Stride"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "conv2d",
          "title": "Type",
          "type": "string"
        },
        "use_bias": {
          "default": true,
          "title": "Use Bias",
          "type": "boolean"
        }
      },
      "required": [
        "type",
        "filters",
        "kernel"
      ],
      "title": "Conv2d",
      "type": "object"
    },
    "Conv2dTranspose": {
      "additionalProperties": false,
      "description": "The transpose of a convolution: each pixel of [height, width, channels] lays down a kernel, W [height, width, in, filters].",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "bias_init": {
          "anyOf": [
            {
              "enum": [
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            }
          ],
          "default": "zeros",
          "title": "Bias Init"
        },
        "dilation": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "default": 1,
          "title": "Dilation"
        },
        "filters": {
          "maximum": 65536,
          "minimum": 1,
          "title": "Filters",
          "type": "integer"
        },
        "init": {
          "anyOf": [
            {
              "enum": [
                "glorot_uniform",
                "glorot_normal",
                "glorot_truncated_normal",
                "he_uniform",
                "he_normal",
                "he_truncated_normal",
                "lecun_uniform",
                "lecun_normal",
                "lecun_truncated_normal",
                "xavier_uniform",
                "xavier_normal",
                "xavier_truncated_normal",
                "orthogonal",
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to he_uniform for relu and its like, else glorot_uniform.",
          "title": "Init"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "kernel": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "title": "Kernel"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "description": "What is left out around all that the kernels touch; valid: nothing.",
          "title": "Padding"
        },
        "stride": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "default": 1,
          "title": "Stride"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "conv2d_transpose",
          "title": "Type",
          "type": "string"
        },
        "use_bias": {
          "default": true,
          "title": "Use Bias",
          "type": "boolean"
        }
      },
      "required": [
        "type",
        "filters",
        "kernel"
      ],
      "title": "Conv2dTranspose",
      "type": "object"
    },
    "Cosine": {
      "additionalProperties": false,
      "description": "From lr at the first step down by half a cosine, which would reach min_lr one step after the last.",
      "properties": {
        "min_lr": {
          "default": 0.0,
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Min Lr",
          "type": "number"
        },
        "type": {
          "const": "cosine",
          "title": "Type",
          "type": "string"
        },
        "warmup_steps": {
          "default": 0,
          "maximum": 2147483647,
          "minimum": 0,
          "title": "Warmup Steps",
          "type": "integer"
        }
      },
      "required": [
        "type"
      ],
      "title": "Cosine",
      "type": "object"
    },
    "Crop2d": {
      "additionalProperties": false,
      "description": "An image without some lines of its edges.",
      "properties": {
        "cropping": {
          "anyOf": [
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 0,
              "type": "integer"
            }
          ],
          "title": "Cropping"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "crop2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "cropping"
      ],
      "title": "Crop2d",
      "type": "object"
    },
    "Data": {
      "additionalProperties": false,
      "description": "Where the rows come from; in a page they are handed over instead, and both are null.",
      "properties": {
        "dataset": {
          "anyOf": [
            {
              "pattern": "^ds_[0-9a-z]{26}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "title": "Dataset"
        },
        "normalize": {
          "default": "none",
          "description": "Of every input whose numbers are not looked up; fitted on the training rows, each feature or channel by itself; inherit: as the weights that fine_tune begins with say.",
          "enum": [
            "none",
            "standard",
            "minmax",
            "inherit"
          ],
          "title": "Normalize",
          "type": "string"
        },
        "synthetic": {
          "anyOf": [
            {
              "$ref": "#/$defs/Synthetic"
            },
            {
              "type": "null"
            }
          ],
          "default": null
        },
        "validation": {
          "$ref": "#/$defs/Validation"
        }
      },
      "title": "Data",
      "type": "object"
    },
    "Dense": {
      "additionalProperties": false,
      "description": "Fully connected: activation(x W + b), W [in, units].",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "bias_init": {
          "anyOf": [
            {
              "enum": [
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            }
          ],
          "default": "zeros",
          "title": "Bias Init"
        },
        "init": {
          "anyOf": [
            {
              "enum": [
                "glorot_uniform",
                "glorot_normal",
                "glorot_truncated_normal",
                "he_uniform",
                "he_normal",
                "he_truncated_normal",
                "lecun_uniform",
                "lecun_normal",
                "lecun_truncated_normal",
                "xavier_uniform",
                "xavier_normal",
                "xavier_truncated_normal",
                "orthogonal",
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to he_uniform for relu and its like, else glorot_uniform.",
          "title": "Init"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "dense",
          "title": "Type",
          "type": "string"
        },
        "units": {
          "maximum": 65536,
          "minimum": 1,
          "title": "Units",
          "type": "integer"
        },
        "use_bias": {
          "default": true,
          "title": "Use Bias",
          "type": "boolean"
        }
      },
      "required": [
        "type",
        "units"
      ],
      "title": "Dense",
      "type": "object"
    },
    "Dropout": {
      "additionalProperties": false,
      "description": "In training, zeros for a share of the elements, drawn anew at every step; the others divided by 1 - rate.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "rate": {
          "description": "Share of zeros.",
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Rate",
          "type": "number"
        },
        "type": {
          "const": "dropout",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "rate"
      ],
      "title": "Dropout",
      "type": "object"
    },
    "EarlyStopping": {
      "additionalProperties": false,
      "description": "Stops once a metric of the validation rows has not improved for `patience` validations.",
      "properties": {
        "metric": {
          "default": "val_loss",
          "pattern": "^val_[a-z0-9_]{1,40}$",
          "title": "Metric",
          "type": "string"
        },
        "min_delta": {
          "default": 0.0,
          "description": "A change of no more than this is no improvement.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Min Delta",
          "type": "number"
        },
        "patience": {
          "maximum": 2147483647,
          "minimum": 1,
          "title": "Patience",
          "type": "integer"
        },
        "restore_best": {
          "default": true,
          "description": "The run ends with the weights of its best validation.",
          "title": "Restore Best",
          "type": "boolean"
        }
      },
      "required": [
        "patience"
      ],
      "title": "EarlyStopping",
      "type": "object"
    },
    "Embedding": {
      "additionalProperties": false,
      "description": "Rows of a table [vocabulary, units] by their numbers: [length] whole numbers become [length, units].",
      "properties": {
        "init": {
          "anyOf": [
            {
              "enum": [
                "glorot_uniform",
                "glorot_normal",
                "glorot_truncated_normal",
                "he_uniform",
                "he_normal",
                "he_truncated_normal",
                "lecun_uniform",
                "lecun_normal",
                "lecun_truncated_normal",
                "xavier_uniform",
                "xavier_normal",
                "xavier_truncated_normal",
                "orthogonal",
                "zeros",
                "ones"
              ],
              "type": "string"
            },
            {
              "maximum": 3.4028234663852886e+38,
              "minimum": -3.4028234663852886e+38,
              "type": "number"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to glorot_uniform.",
          "title": "Init"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "embedding",
          "title": "Type",
          "type": "string"
        },
        "units": {
          "maximum": 65536,
          "minimum": 1,
          "title": "Units",
          "type": "integer"
        },
        "vocabulary": {
          "description": "Numbers are from 0 to vocabulary - 1.",
          "maximum": 16777216,
          "minimum": 1,
          "title": "Vocabulary",
          "type": "integer"
        }
      },
      "required": [
        "type",
        "vocabulary",
        "units"
      ],
      "title": "Embedding",
      "type": "object"
    },
    "Exponential": {
      "additionalProperties": false,
      "description": "Multiplied with gamma at every step.",
      "properties": {
        "gamma": {
          "exclusiveMinimum": 0,
          "maximum": 1,
          "title": "Gamma",
          "type": "number"
        },
        "type": {
          "const": "exponential",
          "title": "Type",
          "type": "string"
        },
        "warmup_steps": {
          "default": 0,
          "maximum": 2147483647,
          "minimum": 0,
          "title": "Warmup Steps",
          "type": "integer"
        }
      },
      "required": [
        "type",
        "gamma"
      ],
      "title": "Exponential",
      "type": "object"
    },
    "FineTune": {
      "additionalProperties": false,
      "description": "Initial weights by the names of layers; all other layers begin as the seed gives them.",
      "properties": {
        "job": {
          "anyOf": [
            {
              "pattern": "^job_[0-9a-z]{26}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "An earlier job that has succeeded.",
          "title": "Job"
        },
        "layers": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 1000,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "null: every layer of which the file has tensors.",
          "title": "Layers"
        },
        "weights": {
          "anyOf": [
            {
              "pattern": "^art_[0-9a-z]{26}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "A file that POST /v1/weights took.",
          "title": "Weights"
        }
      },
      "title": "FineTune",
      "type": "object"
    },
    "Flatten": {
      "additionalProperties": false,
      "description": "Each sample becomes one row, in C order.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "flatten",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Flatten",
      "type": "object"
    },
    "GlobalAvgPool1d": {
      "additionalProperties": false,
      "description": "Mean of each channel of a sequence.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "global_avg_pool1d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "GlobalAvgPool1d",
      "type": "object"
    },
    "GlobalAvgPool2d": {
      "additionalProperties": false,
      "description": "Mean of each channel.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "global_avg_pool2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "GlobalAvgPool2d",
      "type": "object"
    },
    "GlobalMaxPool1d": {
      "additionalProperties": false,
      "description": "Largest element of each channel of a sequence.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "global_max_pool1d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "GlobalMaxPool1d",
      "type": "object"
    },
    "GlobalMaxPool2d": {
      "additionalProperties": false,
      "description": "Largest element of each channel.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "global_max_pool2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "GlobalMaxPool2d",
      "type": "object"
    },
    "GroupNorm": {
      "additionalProperties": false,
      "description": "Over groups of channels, height and width of each sample.",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "eps": {
          "default": 1e-05,
          "description": "Added to the variance.",
          "maximum": 1,
          "minimum": 1e-12,
          "title": "Eps",
          "type": "number"
        },
        "groups": {
          "description": "Divides the number of channels.",
          "maximum": 65536,
          "minimum": 1,
          "title": "Groups",
          "type": "integer"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "group_norm",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "groups"
      ],
      "title": "GroupNorm",
      "type": "object"
    },
    "Hinge": {
      "additionalProperties": false,
      "description": "Of two classes, 0 or -1 and 1, for each output.",
      "properties": {
        "type": {
          "const": "hinge",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Hinge",
      "type": "object"
    },
    "Huber": {
      "additionalProperties": false,
      "description": "Squared error near 0, absolute error beyond delta.",
      "properties": {
        "delta": {
          "default": 1.0,
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Delta",
          "type": "number"
        },
        "type": {
          "const": "huber",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Huber",
      "type": "object"
    },
    "LayerNorm": {
      "additionalProperties": false,
      "description": "Over the last axis: the values of a row, or the channels of each pixel.",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "eps": {
          "default": 1e-05,
          "description": "Added to the variance.",
          "maximum": 1,
          "minimum": 1e-12,
          "title": "Eps",
          "type": "number"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "lr_multiplier": {
          "default": 1.0,
          "description": "Of the learning rate, for its weights.",
          "exclusiveMinimum": 0,
          "maximum": 3.4028234663852886e+38,
          "title": "Lr Multiplier",
          "type": "number"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "trainable": {
          "default": true,
          "description": "false: its weights stay as they are.",
          "title": "Trainable",
          "type": "boolean"
        },
        "type": {
          "const": "layer_norm",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "LayerNorm",
      "type": "object"
    },
    "Limits": {
      "additionalProperties": false,
      "description": "What the job may use; null leaves it to the service.",
      "properties": {
        "max_attempts": {
          "default": 3,
          "maximum": 10,
          "minimum": 1,
          "title": "Max Attempts",
          "type": "integer"
        },
        "wall_s": {
          "anyOf": [
            {
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "title": "Wall S"
        }
      },
      "title": "Limits",
      "type": "object"
    },
    "Linear": {
      "additionalProperties": false,
      "description": "From lr at the first step down in a straight line, which would reach min_lr one step after the last.",
      "properties": {
        "min_lr": {
          "default": 0.0,
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Min Lr",
          "type": "number"
        },
        "type": {
          "const": "linear",
          "title": "Type",
          "type": "string"
        },
        "warmup_steps": {
          "default": 0,
          "maximum": 2147483647,
          "minimum": 0,
          "title": "Warmup Steps",
          "type": "integer"
        }
      },
      "required": [
        "type"
      ],
      "title": "Linear",
      "type": "object"
    },
    "Lion": {
      "additionalProperties": false,
      "description": "The sign of a running mean, with decoupled weight decay.",
      "properties": {
        "beta1": {
          "default": 0.9,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta1",
          "type": "number"
        },
        "beta2": {
          "default": 0.99,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Beta2",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 0.0001,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "lion",
          "title": "Type",
          "type": "string"
        },
        "weight_decay": {
          "default": 0.0,
          "description": "Shrinks weights by lr weight_decay.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Weight Decay",
          "type": "number"
        }
      },
      "required": [
        "type"
      ],
      "title": "Lion",
      "type": "object"
    },
    "Mae": {
      "additionalProperties": false,
      "description": "Mean absolute error.",
      "properties": {
        "type": {
          "const": "mae",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Mae",
      "type": "object"
    },
    "MaxPool1d": {
      "additionalProperties": false,
      "description": "Largest element of each window over a sequence.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "maximum": 1024,
                "minimum": 0,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "size": {
          "maximum": 1024,
          "minimum": 1,
          "title": "Size",
          "type": "integer"
        },
        "stride": {
          "anyOf": [
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to the size.",
          "title": "Stride"
        },
        "type": {
          "const": "max_pool1d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "size",
        "type"
      ],
      "title": "MaxPool1d",
      "type": "object"
    },
    "MaxPool2d": {
      "additionalProperties": false,
      "description": "Largest element of each window.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "enum": [
                "valid",
                "same"
              ],
              "type": "string"
            },
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            }
          ],
          "default": "valid",
          "title": "Padding"
        },
        "size": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "title": "Size"
        },
        "stride": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to the size.",
          "title": "Stride"
        },
        "type": {
          "const": "max_pool2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "size",
        "type"
      ],
      "title": "MaxPool2d",
      "type": "object"
    },
    "MetricOptions": {
      "additionalProperties": false,
      "description": "A metric with options; its name alone stands for the defaults.",
      "properties": {
        "average": {
          "anyOf": [
            {
              "enum": [
                "binary",
                "macro"
              ],
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "For precision, recall and f1: of class 1, or the mean over classes. null: macro where there are several outputs.",
          "title": "Average"
        },
        "k": {
          "anyOf": [
            {
              "maximum": 16777216,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "For top_k_accuracy; null: 5.",
          "title": "K"
        },
        "type": {
          "enum": [
            "accuracy",
            "top_k_accuracy",
            "precision",
            "recall",
            "f1",
            "auc",
            "confusion_matrix",
            "mae",
            "mse",
            "r2"
          ],
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "MetricOptions",
      "type": "object"
    },
    "Model": {
      "additionalProperties": false,
      "description": "Layers in their order; the last one gives logits.",
      "properties": {
        "input": {
          "anyOf": [
            {
              "items": {
                "maximum": 16777216,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 4,
              "minItems": 1,
              "type": "array"
            },
            {
              "maxProperties": 8,
              "minProperties": 1,
              "patternProperties": {
                "^[A-Za-z][A-Za-z0-9_-]{0,63}$": {
                  "items": {
                    "maximum": 16777216,
                    "minimum": 1,
                    "type": "integer"
                  },
                  "maxItems": 4,
                  "minItems": 1,
                  "type": "array"
                }
              },
              "type": "object"
            }
          ],
          "description": "Shape of one row; of several inputs by name.",
          "title": "Input"
        },
        "layers": {
          "items": {
            "discriminator": {
              "mapping": {
                "activation": "#/$defs/ActivationLayer",
                "add": "#/$defs/Add",
                "avg_pool1d": "#/$defs/AvgPool1d",
                "avg_pool2d": "#/$defs/AvgPool2d",
                "batch_norm": "#/$defs/BatchNorm",
                "concat": "#/$defs/Concat",
                "conv1d": "#/$defs/Conv1d",
                "conv2d": "#/$defs/Conv2d",
                "conv2d_transpose": "#/$defs/Conv2dTranspose",
                "crop2d": "#/$defs/Crop2d",
                "dense": "#/$defs/Dense",
                "dropout": "#/$defs/Dropout",
                "embedding": "#/$defs/Embedding",
                "flatten": "#/$defs/Flatten",
                "global_avg_pool1d": "#/$defs/GlobalAvgPool1d",
                "global_avg_pool2d": "#/$defs/GlobalAvgPool2d",
                "global_max_pool1d": "#/$defs/GlobalMaxPool1d",
                "global_max_pool2d": "#/$defs/GlobalMaxPool2d",
                "group_norm": "#/$defs/GroupNorm",
                "layer_norm": "#/$defs/LayerNorm",
                "max_pool1d": "#/$defs/MaxPool1d",
                "max_pool2d": "#/$defs/MaxPool2d",
                "multiply": "#/$defs/Multiply",
                "reshape": "#/$defs/Reshape",
                "upsample2d": "#/$defs/Upsample2d",
                "zero_pad2d": "#/$defs/ZeroPad2d"
              },
              "propertyName": "type"
            },
            "oneOf": [
              {
                "$ref": "#/$defs/Dense"
              },
              {
                "$ref": "#/$defs/BatchNorm"
              },
              {
                "$ref": "#/$defs/LayerNorm"
              },
              {
                "$ref": "#/$defs/GroupNorm"
              },
              {
                "$ref": "#/$defs/Conv2d"
              },
              {
                "$ref": "#/$defs/Conv1d"
              },
              {
                "$ref": "#/$defs/Conv2dTranspose"
              },
              {
                "$ref": "#/$defs/Embedding"
              },
              {
                "$ref": "#/$defs/MaxPool2d"
              },
              {
                "$ref": "#/$defs/MaxPool1d"
              },
              {
                "$ref": "#/$defs/AvgPool1d"
              },
              {
                "$ref": "#/$defs/GlobalMaxPool1d"
              },
              {
                "$ref": "#/$defs/GlobalAvgPool1d"
              },
              {
                "$ref": "#/$defs/AvgPool2d"
              },
              {
                "$ref": "#/$defs/GlobalMaxPool2d"
              },
              {
                "$ref": "#/$defs/GlobalAvgPool2d"
              },
              {
                "$ref": "#/$defs/Dropout"
              },
              {
                "$ref": "#/$defs/Flatten"
              },
              {
                "$ref": "#/$defs/Reshape"
              },
              {
                "$ref": "#/$defs/Upsample2d"
              },
              {
                "$ref": "#/$defs/ZeroPad2d"
              },
              {
                "$ref": "#/$defs/Crop2d"
              },
              {
                "$ref": "#/$defs/Add"
              },
              {
                "$ref": "#/$defs/Multiply"
              },
              {
                "$ref": "#/$defs/Concat"
              },
              {
                "$ref": "#/$defs/ActivationLayer"
              }
            ]
          },
          "minItems": 1,
          "title": "Layers",
          "type": "array"
        }
      },
      "required": [
        "input",
        "layers"
      ],
      "title": "Model",
      "type": "object"
    },
    "Mse": {
      "additionalProperties": false,
      "description": "Mean squared error.",
      "properties": {
        "type": {
          "const": "mse",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Mse",
      "type": "object"
    },
    "Multiply": {
      "additionalProperties": false,
      "description": "Product of two or more values of one shape: activation(a * b * ...).",
      "properties": {
        "activation": {
          "default": "linear",
          "enum": [
            "linear",
            "relu",
            "leaky_relu",
            "elu",
            "gelu",
            "silu",
            "sigmoid",
            "tanh",
            "softplus",
            "hard_sigmoid",
            "hard_swish",
            "softmax"
          ],
          "title": "Activation",
          "type": "string"
        },
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "type": {
          "const": "multiply",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "Multiply",
      "type": "object"
    },
    "Numerics": {
      "additionalProperties": false,
      "description": "How numbers are kept and summed.",
      "properties": {
        "accumulation": {
          "const": "blocked",
          "default": "blocked",
          "title": "Accumulation",
          "type": "string"
        },
        "on_nonfinite": {
          "default": "stop",
          "enum": [
            "stop",
            "continue"
          ],
          "title": "On Nonfinite",
          "type": "string"
        },
        "storage": {
          "const": "float32",
          "default": "float32",
          "title": "Storage",
          "type": "string"
        }
      },
      "title": "Numerics",
      "type": "object"
    },
    "OneCycle": {
      "additionalProperties": false,
      "description": "From lr / div_factor up to lr in a share of the steps, then down to lr / (div_factor final_div_factor), each by half a cosine.",
      "properties": {
        "div_factor": {
          "default": 25.0,
          "minimum": 1,
          "title": "Div Factor",
          "type": "number"
        },
        "final_div_factor": {
          "default": 10000.0,
          "minimum": 1,
          "title": "Final Div Factor",
          "type": "number"
        },
        "pct_start": {
          "default": 0.3,
          "exclusiveMaximum": 1,
          "exclusiveMinimum": 0,
          "title": "Pct Start",
          "type": "number"
        },
        "type": {
          "const": "one_cycle",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "OneCycle",
      "type": "object"
    },
    "Predict": {
      "additionalProperties": false,
      "description": "The outputs of a trained model for the rows of the data set, instead of training.",
      "properties": {
        "job": {
          "description": "The job that trained it.",
          "pattern": "^job_[0-9a-z]{26}$",
          "title": "Job",
          "type": "string"
        }
      },
      "required": [
        "job"
      ],
      "title": "Predict",
      "type": "object"
    },
    "Reshape": {
      "additionalProperties": false,
      "description": "The elements of each sample, in C order, in another shape.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "shape": {
          "items": {
            "maximum": 16777216,
            "minimum": 1,
            "type": "integer"
          },
          "maxItems": 4,
          "minItems": 1,
          "title": "Shape",
          "type": "array"
        },
        "type": {
          "const": "reshape",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "shape"
      ],
      "title": "Reshape",
      "type": "object"
    },
    "RmsProp": {
      "additionalProperties": false,
      "description": "The gradient over a running root mean square, with momentum where it is above 0.",
      "properties": {
        "alpha": {
          "default": 0.99,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Alpha",
          "type": "number"
        },
        "eps": {
          "default": 1e-08,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Eps",
          "type": "number"
        },
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "default": 0.01,
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "momentum": {
          "default": 0.0,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Momentum",
          "type": "number"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "rmsprop",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "RmsProp",
      "type": "object"
    },
    "Sgd": {
      "additionalProperties": false,
      "description": "Stochastic gradient descent, with momentum where it is above 0.",
      "properties": {
        "l1": {
          "default": 0.0,
          "description": "Adds l1 sign(w) to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L1",
          "type": "number"
        },
        "l2": {
          "default": 0.0,
          "description": "Adds l2 w to the gradient.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "L2",
          "type": "number"
        },
        "lr": {
          "maximum": 3.4028234663852886e+38,
          "minimum": 1.1754943508222875e-38,
          "title": "Lr",
          "type": "number"
        },
        "momentum": {
          "default": 0.0,
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Momentum",
          "type": "number"
        },
        "nesterov": {
          "default": false,
          "title": "Nesterov",
          "type": "boolean"
        },
        "schedule": {
          "default": {
            "type": "constant",
            "warmup_steps": 0
          },
          "discriminator": {
            "mapping": {
              "constant": "#/$defs/Constant",
              "cosine": "#/$defs/Cosine",
              "exponential": "#/$defs/Exponential",
              "linear": "#/$defs/Linear",
              "one_cycle": "#/$defs/OneCycle",
              "step": "#/$defs/Step"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Constant"
            },
            {
              "$ref": "#/$defs/Step"
            },
            {
              "$ref": "#/$defs/Exponential"
            },
            {
              "$ref": "#/$defs/Cosine"
            },
            {
              "$ref": "#/$defs/Linear"
            },
            {
              "$ref": "#/$defs/OneCycle"
            }
          ],
          "title": "Schedule"
        },
        "type": {
          "const": "sgd",
          "title": "Type",
          "type": "string"
        },
        "weight_decay": {
          "default": 0.0,
          "description": "PyTorch's name of l2; they add up.",
          "maximum": 3.4028234663852886e+38,
          "minimum": 0,
          "title": "Weight Decay",
          "type": "number"
        }
      },
      "required": [
        "lr",
        "type"
      ],
      "title": "Sgd",
      "type": "object"
    },
    "SoftmaxCrossEntropy": {
      "additionalProperties": false,
      "description": "Cross-entropy of the classes of a row.",
      "properties": {
        "class_weights": {
          "anyOf": [
            {
              "items": {
                "maximum": 3.4028234663852886e+38,
                "minimum": 0,
                "type": "number"
              },
              "maxItems": 65536,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Of each class.",
          "title": "Class Weights"
        },
        "label_smoothing": {
          "default": 0.0,
          "description": "Moves targets y to (1 - s) y + s / classes.",
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Label Smoothing",
          "type": "number"
        },
        "type": {
          "const": "softmax_cross_entropy",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type"
      ],
      "title": "SoftmaxCrossEntropy",
      "type": "object"
    },
    "Step": {
      "additionalProperties": false,
      "description": "Multiplied with gamma every so many steps.",
      "properties": {
        "every_steps": {
          "maximum": 2147483647,
          "minimum": 1,
          "title": "Every Steps",
          "type": "integer"
        },
        "gamma": {
          "default": 0.1,
          "exclusiveMinimum": 0,
          "maximum": 1,
          "title": "Gamma",
          "type": "number"
        },
        "type": {
          "const": "step",
          "title": "Type",
          "type": "string"
        },
        "warmup_steps": {
          "default": 0,
          "maximum": 2147483647,
          "minimum": 0,
          "title": "Warmup Steps",
          "type": "integer"
        }
      },
      "required": [
        "type",
        "every_steps"
      ],
      "title": "Step",
      "type": "object"
    },
    "Synthetic": {
      "additionalProperties": false,
      "description": "Made-up data, the same for the same seed everywhere.",
      "properties": {
        "kind": {
          "enum": [
            "two_class_points",
            "spirals",
            "xor",
            "regression"
          ],
          "title": "Kind",
          "type": "string"
        },
        "rows": {
          "maximum": 1000000,
          "minimum": 1,
          "title": "Rows",
          "type": "integer"
        },
        "seed": {
          "default": 0,
          "exclusiveMaximum": 9007199254740992,
          "minimum": 0,
          "title": "Seed",
          "type": "integer"
        }
      },
      "required": [
        "kind",
        "rows"
      ],
      "title": "Synthetic",
      "type": "object"
    },
    "Telemetry": {
      "additionalProperties": false,
      "description": "What is measured at each step besides the loss.",
      "properties": {
        "gradient_norm": {
          "default": false,
          "description": "The norm of the whole gradient, before it is limited; free with clip.global_norm.",
          "title": "Gradient Norm",
          "type": "boolean"
        }
      },
      "title": "Telemetry",
      "type": "object"
    },
    "Train": {
      "additionalProperties": false,
      "description": "How long, and in which batches.",
      "properties": {
        "accumulate_steps": {
          "anyOf": [
            {
              "maximum": 65536,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": 1,
          "description": "Batches whose gradients make one step; null: 1.",
          "title": "Accumulate Steps"
        },
        "batch_size": {
          "anyOf": [
            {
              "maximum": 16777216,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "null: all training rows.",
          "title": "Batch Size"
        },
        "clip": {
          "anyOf": [
            {
              "$ref": "#/$defs/Clip"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "At most one of value and global_norm."
        },
        "early_stopping": {
          "anyOf": [
            {
              "$ref": "#/$defs/EarlyStopping"
            },
            {
              "type": "null"
            }
          ],
          "default": null
        },
        "epochs": {
          "anyOf": [
            {
              "maximum": 2147483647,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "title": "Epochs"
        },
        "evaluate_every": {
          "anyOf": [
            {
              "maximum": 2147483647,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Steps between validations, besides those after each epoch.",
          "title": "Evaluate Every"
        },
        "seed": {
          "default": 0,
          "exclusiveMaximum": 9007199254740992,
          "minimum": 0,
          "title": "Seed",
          "type": "integer"
        },
        "shuffle": {
          "default": true,
          "title": "Shuffle",
          "type": "boolean"
        },
        "steps": {
          "anyOf": [
            {
              "maximum": 2147483647,
              "minimum": 1,
              "type": "integer"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "title": "Steps"
        }
      },
      "title": "Train",
      "type": "object"
    },
    "Upsample2d": {
      "additionalProperties": false,
      "description": "Each pixel fills a window of `size`: the nearest neighbour.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "size": {
          "anyOf": [
            {
              "items": {
                "maximum": 1024,
                "minimum": 1,
                "type": "integer"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 1,
              "type": "integer"
            }
          ],
          "title": "Size"
        },
        "type": {
          "const": "upsample2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "size"
      ],
      "title": "Upsample2d",
      "type": "object"
    },
    "Validation": {
      "additionalProperties": false,
      "description": "Which rows are kept from training: a share of the shuffled ones, or those that are named. See splits.py.",
      "properties": {
        "fraction": {
          "default": 0.0,
          "description": "floor(rows * fraction) rows, the last of the seed's permutation.",
          "exclusiveMaximum": 1,
          "minimum": 0,
          "title": "Fraction",
          "type": "number"
        },
        "rows": {
          "anyOf": [
            {
              "items": {
                "anyOf": [
                  {
                    "exclusiveMaximum": 2147483648,
                    "minimum": 0,
                    "type": "integer"
                  },
                  {
                    "items": {
                      "exclusiveMaximum": 2147483648,
                      "minimum": 0,
                      "type": "integer"
                    },
                    "maxItems": 2,
                    "minItems": 2,
                    "type": "array"
                  }
                ]
              },
              "maxItems": 100000,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Row numbers from 0, and ranges [first, stop) of them, instead of a fraction.",
          "title": "Rows"
        },
        "stratify": {
          "default": false,
          "description": "Each class gives the same share.",
          "title": "Stratify",
          "type": "boolean"
        }
      },
      "title": "Validation",
      "type": "object"
    },
    "ZeroPad2d": {
      "additionalProperties": false,
      "description": "Lines of zeros around an image.",
      "properties": {
        "inputs": {
          "anyOf": [
            {
              "items": {
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "type": "string"
              },
              "maxItems": 64,
              "minItems": 1,
              "type": "array"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
          "title": "Inputs"
        },
        "name": {
          "anyOf": [
            {
              "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
              "type": "string"
            },
            {
              "type": "null"
            }
          ],
          "default": null,
          "description": "Defaults to <type>_<n>, counted from 1.",
          "title": "Name"
        },
        "padding": {
          "anyOf": [
            {
              "items": {
                "items": {
                  "maximum": 1024,
                  "minimum": 0,
                  "type": "integer"
                },
                "maxItems": 2,
                "minItems": 2,
                "type": "array"
              },
              "maxItems": 2,
              "minItems": 2,
              "type": "array"
            },
            {
              "maximum": 1024,
              "minimum": 0,
              "type": "integer"
            }
          ],
          "title": "Padding"
        },
        "type": {
          "const": "zero_pad2d",
          "title": "Type",
          "type": "string"
        }
      },
      "required": [
        "type",
        "padding"
      ],
      "title": "ZeroPad2d",
      "type": "object"
    }
  },
  "additionalProperties": false,
  "description": "One training run.",
  "properties": {
    "allow_software": {
      "anyOf": [
        {
          "type": "boolean"
        },
        {
          "type": "null"
        }
      ],
      "default": null,
      "description": "null leaves it to the worker's settings.",
      "title": "Allow Software"
    },
    "backend": {
      "default": "auto",
      "enum": [
        "auto",
        "webgl2",
        "cpu"
      ],
      "title": "Backend",
      "type": "string"
    },
    "checkpoint": {
      "$ref": "#/$defs/Checkpoint"
    },
    "data": {
      "$ref": "#/$defs/Data"
    },
    "deadline": {
      "anyOf": [
        {
          "pattern": "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$",
          "type": "string"
        },
        {
          "type": "null"
        }
      ],
      "default": null,
      "description": "Aborted if still queued then; with an offset: 2027-01-31T18:00:00Z.",
      "title": "Deadline"
    },
    "diagnostics": {
      "default": "basic",
      "enum": [
        "none",
        "basic",
        "full"
      ],
      "title": "Diagnostics",
      "type": "string"
    },
    "fine_tune": {
      "anyOf": [
        {
          "$ref": "#/$defs/FineTune"
        },
        {
          "type": "null"
        }
      ],
      "default": null
    },
    "inspect": {
      "default": null,
      "title": "Inspect",
      "type": "null"
    },
    "limits": {
      "$ref": "#/$defs/Limits"
    },
    "loss": {
      "anyOf": [
        {
          "enum": [
            "bce",
            "softmax_cross_entropy",
            "mse",
            "mae",
            "huber",
            "hinge"
          ],
          "type": "string"
        },
        {
          "discriminator": {
            "mapping": {
              "bce": "#/$defs/Bce",
              "hinge": "#/$defs/Hinge",
              "huber": "#/$defs/Huber",
              "mae": "#/$defs/Mae",
              "mse": "#/$defs/Mse",
              "softmax_cross_entropy": "#/$defs/SoftmaxCrossEntropy"
            },
            "propertyName": "type"
          },
          "oneOf": [
            {
              "$ref": "#/$defs/Bce"
            },
            {
              "$ref": "#/$defs/SoftmaxCrossEntropy"
            },
            {
              "$ref": "#/$defs/Mse"
            },
            {
              "$ref": "#/$defs/Mae"
            },
            {
              "$ref": "#/$defs/Huber"
            },
            {
              "$ref": "#/$defs/Hinge"
            }
          ]
        }
      ],
      "title": "Loss"
    },
    "metrics": {
      "items": {
        "anyOf": [
          {
            "enum": [
              "accuracy",
              "top_k_accuracy",
              "precision",
              "recall",
              "f1",
              "auc",
              "confusion_matrix",
              "mae",
              "mse",
              "r2"
            ],
            "type": "string"
          },
          {
            "$ref": "#/$defs/MetricOptions"
          }
        ]
      },
      "maxItems": 10,
      "title": "Metrics",
      "type": "array"
    },
    "model": {
      "$ref": "#/$defs/Model"
    },
    "name": {
      "default": "",
      "maxLength": 200,
      "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$",
      "title": "Name",
      "type": "string"
    },
    "numerics": {
      "$ref": "#/$defs/Numerics"
    },
    "optimizer": {
      "discriminator": {
        "mapping": {
          "adadelta": "#/$defs/Adadelta",
          "adagrad": "#/$defs/Adagrad",
          "adam": "#/$defs/Adam",
          "adamw": "#/$defs/AdamW",
          "lion": "#/$defs/Lion",
          "rmsprop": "#/$defs/RmsProp",
          "sgd": "#/$defs/Sgd"
        },
        "propertyName": "type"
      },
      "oneOf": [
        {
          "$ref": "#/$defs/Sgd"
        },
        {
          "$ref": "#/$defs/Adam"
        },
        {
          "$ref": "#/$defs/AdamW"
        },
        {
          "$ref": "#/$defs/RmsProp"
        },
        {
          "$ref": "#/$defs/Adagrad"
        },
        {
          "$ref": "#/$defs/Adadelta"
        },
        {
          "$ref": "#/$defs/Lion"
        }
      ],
      "title": "Optimizer"
    },
    "predict": {
      "anyOf": [
        {
          "$ref": "#/$defs/Predict"
        },
        {
          "type": "null"
        }
      ],
      "default": null,
      "description": "Instead of training; POST /v1/jobs/{id}/predictions makes it."
    },
    "spec_version": {
      "const": 1,
      "default": 1,
      "title": "Spec Version",
      "type": "integer"
    },
    "tags": {
      "maxProperties": 32,
      "patternProperties": {
        "^[A-Za-z][A-Za-z0-9_-]{0,63}$": {
          "maxLength": 200,
          "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$",
          "type": "string"
        }
      },
      "title": "Tags",
      "type": "object"
    },
    "telemetry": {
      "$ref": "#/$defs/Telemetry"
    },
    "throttle": {
      "default": null,
      "title": "Throttle",
      "type": "null"
    },
    "train": {
      "$ref": "#/$defs/Train"
    }
  },
  "required": [
    "model",
    "loss",
    "optimizer",
    "train"
  ],
  "title": "JobSpec",
  "type": "object"
};

export const patternWords = {
  "^[A-Za-z][A-Za-z0-9_-]{0,63}$": "a letter, then up to 63 letters, digits, _ or -",
  "^[^\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$": "text without control characters",
  "^ds_[0-9a-z]{26}$": "the id of a data set, ds_...",
  "^job_[0-9a-z]{26}$": "the id of a job, job_...",
  "^art_[0-9a-z]{26}$": "the id of uploaded weights, art_...",
  "^val_[a-z0-9_]{1,40}$": "val_loss, or val_ and the name of a metric",
  "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$": "a time with an offset, such as 2027-01-31T18:00:00Z"
};
