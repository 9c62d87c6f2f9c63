package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	callers   = 4
	pause     = 10 * time.Millisecond
	patience  = 5 * time.Second
	everySo   = 2 * time.Second
	authority = "greet.example"
)

// load is a client that calls all the time and counts who answers.
type load struct {
	conn *grpc.ClientConn

	mu sync.Mutex
	// dubbo and successor are who answered since it was said last, total and failed since the
	// beginning.
	dubbo, successor int
	total, failed    int
	last             error
}

func newLoad(address string) (*load, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(authority), grpc.WithDisableRetry())
	if err != nil {
		return nil, err
	}
	return &load{conn: conn}, nil
}

func (l *load) close() { _ = l.conn.Close() }

// one calls once, and returns what was answered.
func (l *load) one(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var answer wrapperspb.StringValue
	err := l.conn.Invoke(ctx, "/greet.Greeter/Greet", wrapperspb.String("world"), &answer)
	return answer.GetValue(), err
}

// run calls until ctx ends, and says every now and then who answers. Its error is the last failure.
func (l *load) run(ctx context.Context) error {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				answer, err := l.one(context.WithoutCancel(ctx)) // what was begun is not given up
				l.note(answer, err)
				time.Sleep(pause)
			}
		})
	}
	tick := time.NewTicker(everySo)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			l.say()
		}
	}
	all.Wait()
	fmt.Printf("%d calls in all, %d failed\n", l.total, l.failed)
	return l.last
}

func (l *load) note(answer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.total++; {
	case err != nil:
		l.failed++
		l.last = err
	case strings.HasSuffix(answer, "from Dubbo"):
		l.dubbo++
	default:
		l.successor++
	}
}

func (l *load) say() {
	l.mu.Lock()
	defer l.mu.Unlock()
	answered := max(l.dubbo+l.successor, 1)
	fmt.Printf("%6d calls: %3d %% answered by Dubbo, %3d %% by the successor; %d failed\n", l.total,
		(100*l.dubbo+answered/2)/answered, (100*l.successor+answered/2)/answered, l.failed)
	l.dubbo, l.successor = 0, 0
}
