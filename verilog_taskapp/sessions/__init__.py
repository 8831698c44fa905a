"""The environment step by step, for trainers that sample themselves."""
