// Command guest does what the variable MODE says; it is for tests of the runner.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func main() {
	raw := map[string]func(){
		"exit":  func() { os.Exit(3) },
		"text":  func() { fmt.Println("Hello, world") },
		"half":  func() { os.Stdout.Write([]byte{100, 0, 0, 0, 1, 2, 3}) },
		"large": func() { os.Stdout.Write([]byte{1, 0, 16, 0, 1, 2, 3}) },
		"undecodable": func() {
			os.Stdout.Write([]byte{3, 0, 0, 0, 255, 255, 255})
			time.Sleep(time.Hour)
		},
		"silent": func() { time.Sleep(time.Hour) },
		"flood":  flood,
		"wake":   wake,
	}
	if f := raw[os.Getenv("MODE")]; f != nil {
		f()
		return
	}
	switch os.Getenv("MODE") {
	case "patch":
		sdk.Serve(sdk.PatchPlugin{
			Name: "guest", Version: "1", Reads: []string{"endpoints"}, Types: []sdk.Type{{Url: "type.googleapis.com/a.B"}},
			New: sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(patch), nil }),
		})
	case "authenticator":
		sdk.Serve(sdk.AuthenticatorPlugin{
			Name: "guest", Version: "1",
			New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return sdk.AuthenticatorFunc(authenticate), nil }),
		})
	default:
		sdk.Serve(sdk.RegistryPlugin{
			Name: "guest", Version: "1", Publishes: []string{"services"}, Reads: []string{"endpoints"},
			New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
		})
	}
}

func run(ctx context.Context, out sdk.Publisher) error {
	switch os.Getenv("MODE") {
	case "loop":
		for {
		}
	case "grow":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
		}
	case "end":
		return errors.New("there is nothing to do")
	case "rows":
		for n := 0; ; n++ {
			if err := out.Update("services", []*sdk.Row{{Key: strconv.Itoa(n), Payload: make([]byte, 100_000)}}, nil); err != nil {
				return err
			}
		}
	case "world":
		return world(ctx, out)
	}
	return out.Synced()
}

// world publishes what it sees of the world.
func world(ctx context.Context, out sdk.Publisher) error {
	put := func(key, value string) error {
		return out.Update("services", []*sdk.Row{{Key: key, Payload: []byte(value)}}, nil)
	}
	get := func(url string) string {
		r, err := sdk.Fetch(ctx, sdk.Request{URL: url})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d %s", r.Status, r.Body)
	}
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	before := time.Now()
	if err := sdk.Sleep(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return errors.Join(
		put("granted", get(os.Getenv("URL")+"/granted")), put("redirected", get(os.Getenv("URL")+"/away")),
		put("denied", get("http://127.0.0.1:1/x")), put("denied again", get("http://127.0.0.1:1/y")),
		put("slept", strconv.FormatBool(time.Since(before) >= 20*time.Millisecond)),
		put("year", strconv.Itoa(time.Now().Year())), put("file", read(os.Getenv("FILE"))), put("other", read("/etc/passwd")),
		put("environment", strings.Join(os.Environ(), " ")), out.Synced(),
	)
}

func patch(s *state.State, _ string, facts map[string]string, given []sdk.Resource) (changed []sdk.Resource, removed []string, err error) {
	for _, r := range given {
		end(r.Name)
		switch r.Name {
		case "slow":
			time.Sleep(3 * time.Second)
		case "rows":
			t := s.Table("endpoints")
			row := "none"
			if got := s.Row("endpoints", "k1"); got != nil {
				row = string(got.Payload)
			}
			r.Body = fmt.Appendf(nil, "%d %s %v", t.Len(), row, s.Row("endpoints", "absent") == nil)
		default:
			r.Body = append(r.Body, '!')
		}
		changed = append(changed, r)
	}
	return changed, nil, nil
}

// end does what no instance survives, for the words that say so.
func end(word string) {
	switch word {
	case "exit":
		os.Exit(7)
	case "trap":
		var none *[1 << 30]byte
		none[1<<29] = 1
	case "loop":
		for {
		}
	}
}

// authenticate does what the bearer token says, in front of its first hyphen.
func authenticate(ctx context.Context, c sdk.Credentials) ([]string, error) {
	word, _, _ := strings.Cut(strings.TrimPrefix(c.Headers["authorization"], "Bearer "), "-")
	end(word)
	switch word {
	case "slow":
		return nil, sdk.Sleep(context.WithoutCancel(ctx), time.Hour) // it doesn't heed its deadline
	case "away":
		return nil, fmt.Errorf("asking my server: %w", sdk.ErrUnavailable)
	case "good":
		return []string{"spiffe://cluster.local/ns/shop/sa/web"}, nil
	}
	return nil, errors.New("the token is unknown")
}

// wake is a module without timers of its own: it is ready, asks to be woken twice, and publishes
// nothing when both Ticks have come.
func wake() {
	say(&pb.FromPlugin{Ready: &pb.Ready{Version: 1, Plugin: "wake", Kind: pb.KindRegistry, Publishes: []string{"services"}}})
	say(&pb.FromPlugin{Wake: &pb.Wake{Id: 8, AfterMs: 60}})
	say(&pb.FromPlugin{Wake: &pb.Wake{Id: 7, AfterMs: 20}})
	for woken := map[uint64]bool{}; !woken[7] || !woken[8]; {
		if m := hear(); m.Tick != nil {
			woken[m.Tick.Id] = true
		}
	}
	say(&pb.FromPlugin{Synced: &pb.Synced{}})
}

func say(m *pb.FromPlugin) {
	frame := m.AppendTo(nil)
	os.Stdout.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(frame))), frame...))
}

func hear() *pb.FromCore {
	var length [4]byte
	if _, err := io.ReadFull(os.Stdin, length[:]); err != nil {
		os.Exit(0)
	}
	frame := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(os.Stdin, frame); err != nil {
		os.Exit(0)
	}
	m := new(pb.FromCore)
	if m.Unmarshal(frame) != nil {
		os.Exit(9)
	}
	return m
}

// flood writes small messages without end.
func flood() {
	frame := (&pb.FromPlugin{Log: &pb.Log{}}).AppendTo(nil)
	one := append(binary.LittleEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	var many []byte
	for range 1000 {
		many = append(many, one...)
	}
	for {
		os.Stdout.Write(many)
	}
}
