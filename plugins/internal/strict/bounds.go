package strict

import "time"

// Duration reads a field that holds a duration as Go writes it, such as 20ms; otherwise is what
// counts where it is empty.
func Duration(field, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, Errorf(field, "%q is no duration; write such as 20ms", text)
	}
	return d, nil
}

// Between reads a field that holds a duration into where its value goes, and checks that it is
// within bounds. Empty text is the least.
func Between(field, text string, into *time.Duration, least, most time.Duration) (err error) {
	if *into, err = Duration(field, text, least); err != nil {
		return err
	}
	if *into < least || *into > most {
		return Errorf(field, "%s is not between %v and %v", text, least, most)
	}
	return nil
}

// Within checks that a field's number is within bounds.
func Within(field string, value, least, most int) error {
	if value < least || value > most {
		return Errorf(field, "%d is not between %d and %d", value, least, most)
	}
	return nil
}
