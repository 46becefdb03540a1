"""What may be asked, and how: what every door's requests are made of, checked by and refused with."""
