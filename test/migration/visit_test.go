package migration

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const patience = 2 * time.Minute

// client calls all the time and counts.
type client struct {
	conn *grpc.ClientConn

	mu       sync.Mutex
	answered map[string]int
	failed   []error
}

func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		var answer wrapperspb.StringValue
		err := c.conn.Invoke(call, "/greet.Greeter/Greet", wrapperspb.String("test"), &answer)
		cancel()
		_, by, _ := strings.Cut(answer.GetValue(), "hello test, from ")
		c.mu.Lock()
		if err != nil {
			c.failed = append(c.failed, err)
		}
		c.answered[by]++
		c.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// sample returns the successor's share of the next calls.
func (c *client) sample(calls int) float64 {
	count := func() (all, successor int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for by, n := range c.answered {
			if all += n; by == "the successor" {
				successor = n
			}
		}
		return all, successor
	}
	before, was := count()
	for {
		if all, is := count(); all-before >= calls {
			return float64(is-was) / float64(all-before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// walk moves the calls in steps, and back, and waits each time until shares are as the weights say.
func walk(_, root, dir string) error {
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:7180",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("greet.example"),
		grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c := &client{conn: conn, answered: map[string]int{}}
	ctx, stop := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() { c.run(ctx) })
	}
	err = steps(c, root, dir)
	stop()
	calling.Wait()
	fmt.Printf("the test's own calls: %v, %d failed\n", c.answered, len(c.failed))
	if err == nil && len(c.failed) > 0 {
		err = fmt.Errorf("%d calls failed, the first: %w", len(c.failed), c.failed[0])
	}
	return err
}

func steps(c *client, root, dir string) error {
	if share := c.sample(200); share != 0 {
		return fmt.Errorf("before anything is moved the successor has a share of %v", share)
	}
	for _, percent := range []int{25, 50, 100, 10, 100} {
		out, err := exec.Command("make", "--no-print-directory", "-C", root, "migration-to",
			fmt.Sprintf("PERCENT=%d", percent), "MIGRATION_DIR="+dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		const calls = 400
		want := float64(percent) / 100
		allowed := 5 * math.Sqrt(want*(1-want)/calls) // five standard deviations
		for end := time.Now().Add(patience); ; {
			share := c.sample(calls)
			if math.Abs(share-want) <= allowed {
				fmt.Printf("at %d %% the successor answers %.1f %%\n", percent, 100*share)
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("at %d %% the successor answers %v", percent, share)
			}
		}
	}
	return nil
}
