"""Read answers of models: lenient where the meaning is plain, with a repair request where it is not."""
