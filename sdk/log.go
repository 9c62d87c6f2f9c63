package sdk

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// log sends a line to the core's log; a line that can't be sent is lost.
func (ps *pluginSession) log(ctx context.Context, level Level, text string, args ...any) {
	ps.say(ctx, &pb.FromPlugin{Log: &pb.Log{Level: level, Text: text, Fields: fields(args)}})
}

// fields makes fields of key, value, … as log/slog has them.
func fields(args []any) map[string]string {
	if len(args) == 0 {
		return nil
	}
	m := make(map[string]string, (len(args)+1)/2)
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			m["!BADKEY"] = text.Value(args[i])
			break
		}
		m[text.Value(args[i])] = text.Value(args[i+1])
	}
	return m
}
