//go:build wasip1

package sdk

import (
	"context"
	"errors"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func fetch(ctx context.Context, r Request) (*Response, error) {
	ps, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	m, err := ps.ask(ctx, func(id uint64) *pb.FromPlugin {
		return &pb.FromPlugin{Fetch: &pb.Fetch{
			Id: id, Method: r.Method, Url: r.URL, Headers: r.Headers, Body: r.Body, TimeoutMs: uint32(r.Timeout / time.Millisecond),
		}}
	})
	switch {
	case err != nil:
		return nil, err
	case m.Fetched.Error != "":
		return nil, errors.New(m.Fetched.Error)
	}
	return &Response{Status: int(m.Fetched.Status), Headers: m.Fetched.Headers, Body: m.Fetched.Body}, nil
}
