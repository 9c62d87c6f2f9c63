package budget

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Holding is what a stream makes the core keep.
type Holding struct {
	// Types are those asked for; MostNames are the names of the type that has most, Names those of
	// all.
	Types, MostNames, Names int
	// Bytes of node and names.
	Bytes int
}

// CheckHolding judges what a stream holds.
func (s *Stream) CheckHolding(h Holding) error {
	const less = "ask for less"
	switch {
	case over(h.Types, s.Types):
		return exceeds(codes.ResourceExhausted, "maxTypes", s.Types, fmt.Sprintf("the stream asks for %d types", h.Types), less)
	case over(h.MostNames, s.TypeNames):
		return exceeds(codes.ResourceExhausted, "maxNamesPerType", s.TypeNames, fmt.Sprintf("the stream asks for %d names of one type", h.MostNames), less)
	case over(h.Names, s.Names):
		return exceeds(codes.ResourceExhausted, "maxNamesPerStream", s.Names, fmt.Sprintf("the stream asks for %d names", h.Names), less)
	case over(h.Bytes, s.Bytes):
		return exceeds(codes.ResourceExhausted, "maxBytesPerStream", s.Bytes, fmt.Sprintf("the stream's node and names take %d bytes", h.Bytes), less)
	}
	return nil
}

// Silent ends a stream that has not said anything for too long.
func (s *Stream) Silent() error {
	return &Refusal{
		Limit: "idleTimeout", Code: codes.DeadlineExceeded,
		Text: fmt.Sprintf("the stream had no request within idleTimeout, %v: send the first request at once", s.Idle),
	}
}

// CheckHeaders judges the bytes of a stream's headers.
func (s *Stream) CheckHeaders(bytes int) error {
	if !over(bytes, s.HeaderBytes) {
		return nil
	}
	return exceeds(codes.InvalidArgument, "maxHeaderBytes", s.HeaderBytes,
		fmt.Sprintf("the stream's headers have %d bytes", bytes), "send fewer or shorter ones")
}

// CheckQueue judges how many bytes wait to be written to a client.
func (s *Stream) CheckQueue(bytes int) error {
	if !over(bytes, s.QueuedBytes) {
		return nil
	}
	return exceeds(codes.ResourceExhausted, "maxQueuedBytes", s.QueuedBytes,
		fmt.Sprintf("the stream's responses have %d bytes", bytes), "ask for less, or over several streams")
}

// CheckQuestions judges how many questions wait for their answers.
func (s *Stream) CheckQuestions(questions int) error {
	if !over(questions, s.Questions) {
		return nil
	}
	return exceeds(codes.ResourceExhausted, "maxQuestions", s.Questions,
		fmt.Sprintf("%d requests wait for their answers", questions), "wait for them before asking again")
}
