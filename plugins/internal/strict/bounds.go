package strict

import "time"

// Duration reads a field that holds a duration as Go writes it, such as 20ms; otherwise is what counts where it is empty.
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
