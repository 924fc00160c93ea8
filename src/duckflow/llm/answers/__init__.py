"""Read models' answers: leniently if the meaning is clear, else after asking the model to repair them."""
