package xds

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ending says why a stream ended: the gRPC code that is counted, words, and whether somebody ought
// to look at it.
func ending(err error) (code codes.Code, reason string, level slog.Level) {
	code = status.Code(err)
	switch code {
	case codes.OK:
		return code, "the client ended it", slog.LevelInfo
	case codes.Canceled:
		return code, "the client or its connection is gone", slog.LevelInfo
	case codes.Unavailable:
		return code, status.Convert(err).Message(), slog.LevelInfo
	}
	return code, status.Convert(err).Message(), slog.LevelWarn
}

// What the ends of streams may log. When a thousand connections break at once, the count says so.
const (
	endsPerSecond = 20
	endsAtOnce    = 200
)

// lines bounds how much is logged.
type lines struct {
	limit  *rate.Limiter
	unsaid atomic.Int64
}

func newLines() *lines { return &lines{limit: rate.NewLimiter(endsPerSecond, endsAtOnce)} }

// log writes a line, or counts it; the next one that is written says how many were not.
func (l *lines) log(to *slog.Logger, level slog.Level, text string, args ...any) {
	if !l.limit.Allow() {
		l.unsaid.Add(1)
		return
	}
	if n := l.unsaid.Swap(0); n > 0 {
		args = append(args, "unsaid", n)
	}
	to.Log(context.Background(), level, text, args...)
}

// ended counts and logs the stream's end.
func (st *stream) ended(err error) {
	code, reason, level := ending(err)
	st.server.metrics.ended.WithLabelValues(code.String()).Inc()
	st.server.metrics.limited(err)
	args := []any{"code", code.String(), "reason", reason, "after", time.Since(st.since).Round(time.Millisecond)}
	if s := st.sending; s != nil {
		args = append(args, "sending", short(s.response.typeURL), "for", time.Since(s.since).Round(time.Millisecond))
	}
	st.server.lines.log(st.log, level, "stream ends", args...)
}
