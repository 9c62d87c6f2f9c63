package budget

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Refusal is why a client doesn't get what it asks for. It is a gRPC status.
type Refusal struct {
	// Limit is the setting's name.
	Limit string
	Code  codes.Code
	Text  string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// GRPCStatus is what the client is told.
func (r *Refusal) GRPCStatus() *status.Status { return status.New(r.Code, r.Text) }

// exceeds refuses what is more than a limit; what says what there is too much of, and do what to do
// about it.
func exceeds(code codes.Code, setting string, most any, what, do string) *Refusal {
	return &Refusal{
		Limit: setting, Code: code,
		Text: fmt.Sprintf("%s; %s is %v: %s, or raise the control plane's setting %s", what, setting, most, do, setting),
	}
}

// over reports whether there is more of something than its limit, if it has one.
func over[N int | float64](n, most N) bool { return most > 0 && n > most }
