package etcd

import (
	"errors"
	"time"
)

// errAway stands for all reasons why a connection is lost.
var errAway = errors.New("away")

// complaints are what was said last of one thing.
type complaints struct {
	text string
	at   time.Time
}

// first reports whether an error is new, or was said a minute ago.
func (c *complaints) first(err error, now time.Time) bool {
	if c.text == err.Error() && now.Sub(c.at) < time.Minute {
		return false
	}
	c.text, c.at = err.Error(), now
	return true
}
