"""The duck's condition, as data: vitals (mood, focus, stamina), loop limits, and the reasons for both."""
