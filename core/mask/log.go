package mask

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler passes records on to another handler without what is secret.
func (s *Secrets) Handler(to slog.Handler) slog.Handler { return handler{to, s} }

type handler struct {
	slog.Handler
	secrets *Secrets
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.secrets.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.secrets.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.secrets.attr(a)
	}
	return handler{h.Handler.WithAttrs(clean), h.secrets}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.secrets}
}

// attr masks a value, whatever it is made of; what has nothing secret in it stays what it is.
func (s *Secrets) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	a.Key = s.Text(a.Key)
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(s.Text(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, in := range group {
			clean[i] = s.attr(in)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if without := s.Text(text); without != text {
			a.Value = slog.StringValue(without)
		} else {
			a.Value = v
		}
	default:
		a.Value = v
	}
	return a
}
