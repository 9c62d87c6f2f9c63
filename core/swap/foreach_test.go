package swap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// newShops is a registry whose rows of table shops stand in a file, as a JSON object by key. It
// follows the file.
func newShops(config []byte) (sdk.Registry, error) {
	var c struct{ From string }
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	return sdk.RegistryFunc(func(ctx context.Context, out sdk.Publisher) error {
		before := map[string]json.RawMessage{}
		for first := true; ; first = false {
			text, err := os.ReadFile(c.From)
			rows := map[string]json.RawMessage{}
			if err := errors.Join(err, json.Unmarshal(text, &rows)); err != nil {
				return err
			}
			var upserts []*sdk.Row
			for key, payload := range rows {
				upserts = append(upserts, &sdk.Row{Key: key, Payload: payload})
			}
			gone := slices.DeleteFunc(slices.Collect(maps.Keys(before)), func(key string) bool { return rows[key] != nil })
			if err := out.Update("shops", upserts, gone); err != nil {
				return err
			}
			if first {
				err = out.Synced()
			}
			if err != nil {
				return err
			}
			before = rows
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(20 * time.Millisecond):
			}
		}
	}), nil
}

// newShop is a registry that says one service of the namespace shop. One whose host is "never" says
// nothing at all; "bad" is refused.
func newShop(config []byte) (sdk.Registry, error) {
	var c struct {
		Host   string
		Doors  int
		Opened bool
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	if c.Host == "bad" {
		return nil, errors.New("a bad host")
	}
	return sdk.RegistryFunc(func(ctx context.Context, out sdk.Publisher) error {
		if c.Host == "never" {
			<-ctx.Done()
			return nil
		}
		s := &sdk.Service{Host: c.Host, Namespace: "shop", Name: fmt.Sprint(c.Doors, c.Opened)}
		if err := sdk.NewList(out).Set([]*sdk.Service{s}, nil); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}), nil
}

// street is a core with a plugin for each shop.
type street struct {
	*Swapper
	t    *testing.T
	path string
}

const shop = `{"host": %q, "doors": %d, "opened": true, "list": []}`

// newStreet makes one whose entry has the given onLoss, and waits so long for its instances.
func newStreet(t *testing.T, rows map[string]string, onLoss, wait string) *street {
	t.Helper()
	s := &street{t: t, path: filepath.Join(t.TempDir(), "shops.json")}
	s.write(rows)
	s.Swapper = liveOf(t, fmt.Sprintf(`plugins:
  - {name: a, kind: registry, builtin: registry/a}
  - name: shop
    kind: registry
    builtin: registry/shop
    forEach: {table: shops, max: 3, wait: %s}
    config: {host: {row: host}, doors: {row: doors}, opened: {row: opened}}
    onLoss: %s
  - {name: shops, kind: registry, builtin: registry/shops, onLoss: apply, config: {from: %s}}`, wait, onLoss, s.path), nil)
	return s
}

func (s *street) write(rows map[string]string) {
	s.t.Helper()
	all := map[string]json.RawMessage{}
	for key, row := range rows {
		all[key] = json.RawMessage(row)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(s.path+"~", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path+"~", s.path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// names are those of the plugins that have a process.
func (s *street) names() string {
	var all []string
	for _, st := range s.cfg.Host.Status() {
		all = append(all, st.Entry.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// services are those of the shops that are served.
func (s *street) services() string {
	var all []string
	for _, r := range s.cfg.Control.Rows("services") {
		if v, err := sdk.ServiceOf(r); err == nil && v.Namespace == "shop" {
			all = append(all, v.Host+":"+v.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// is waits until these plugins run and these services are served.
func (s *street) is(names, services string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); s.names() != names || s.services() != services; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("there are %s with %s, not %s with %s; %v", s.names(), s.services(), names, services, s.Misfits())
		}
	}
}

func (s *street) pid(name string) int {
	for _, st := range s.cfg.Host.Status() {
		if st.Entry.Name == name {
			return st.PID
		}
	}
	return 0
}

func one(host string, doors int) string { return fmt.Sprintf(shop, host, doors) }

// TestForEach: there is an instance for each row, from the first revision on; it comes, changes and
// goes with its row, and no other one is touched.
func TestForEach(t *testing.T) {
	s := newStreet(t, map[string]string{"one": one("1.example", 1), "two": one("2.example", 2)}, "apply", "1m")
	if got, want := s.services(), "1.example:1 true 2.example:2 true"; got != want {
		t.Errorf("the first revision has %s, not %s", got, want)
	}
	s.is("a shop@one shop@two shops", "1.example:1 true 2.example:2 true")
	first := s.pid("shop@one")

	s.write(map[string]string{"one": one("1.example", 1), "two": one("2.example", 7), "three": one("3.example", 3)})
	s.is("a shop@one shop@three shop@two shops", "1.example:1 true 2.example:7 true 3.example:3 true")
	if c := s.history.last("shop@two").now(); c.What != doSwap {
		t.Errorf("a row that changed led to %s", c.What)
	}
	s.write(map[string]string{"one": one("1.example", 1), "three": one("3.example", 3)})
	s.is("a shop@one shop@three shops", "1.example:1 true 3.example:3 true")
	if got := s.pid("shop@one"); got != first {
		t.Errorf("the first one's process is %d, not %d", got, first)
	}

	// Its publisher's death takes nothing away, nor does its swap.
	if err := syscall.Kill(s.pid("shops"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restart(t.Context(), "shops", Options{}); err != nil {
		t.Fatal(err)
	}
	s.is("a shop@one shop@three shops", "1.example:1 true 3.example:3 true")
	if got := s.pid("shop@one"); got != first {
		t.Errorf("the first one's process is %d, not %d", got, first)
	}
	// An instance that dies is started again alone.
	died := s.pid("shop@three")
	if err := syscall.Kill(died, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); s.pid("shop@three") == died || s.pid("shop@three") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not started again")
		}
	}
	s.is("a shop@one shop@three shops", "1.example:1 true 3.example:3 true")
	if got := s.pid("shop@one"); got != first {
		t.Errorf("the first one's process is %d, not %d", got, first)
	}
	// Commands know instances, and say what may be done with the entry.
	if _, err := s.Restart(t.Context(), "shop@three", Options{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"shop", "shop@one"} {
		if _, err := s.Swap(t.Context(), name, Request{Builtin: "registry/a"}, Options{Ephemeral: true}); err == nil || !strings.Contains(err.Error(), "edit") {
			t.Errorf("%s can be made another one: %v", name, err)
		}
	}
}

// TestForEachHurries: a swap that waits for what does not come ends when its row changes again, and
// for a command.
func TestForEachHurries(t *testing.T) {
	s := newStreet(t, map[string]string{"one": one("1.example", 1), "two": one("2.example", 2)}, "apply", "1m")
	s.is("a shop@one shop@two shops", "1.example:1 true 2.example:2 true")
	state := func(want State, why string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			c := &Change{}
			if all := s.History("shop@one"); len(all) > 0 {
				c = all[len(all)-1]
			}
			if c.State == want && strings.Contains(strings.Join(c.Reasons, " "), why) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("it is %s", c.Line())
			}
		}
	}
	s.write(map[string]string{"one": one("never", 1), "two": one("2.example", 2)})
	state(Syncing, "")
	if _, err := s.Restart(t.Context(), "a", Options{}); err != nil {
		t.Fatal(err)
	}
	state(Failed, "a command came first")
	s.write(map[string]string{"one": one("never", 2), "two": one("2.example", 2)})
	state(Syncing, "")
	s.write(map[string]string{"one": one("1.example", 3), "two": one("2.example", 2)})
	s.is("a shop@one shop@two shops", "1.example:3 true 2.example:2 true")
	s.write(map[string]string{"one": one("never", 3), "two": one("2.example", 2)})
	state(Syncing, "")
	s.write(map[string]string{"two": one("2.example", 2)})
	s.is("a shop@two shops", "2.example:2 true")
}

// TestForEachMisfits: rows that can have no instance are told with the reason, and harm nobody.
func TestForEachMisfits(t *testing.T) {
	rows := map[string]string{
		"1": one("1.example", 1), "2": one("2.example", 2), "3": one("3.example", 3), "4": one("4.example", 4),
		"no/name": one("5.example", 5), "none": "[1]", "0-lacks": `{"host": "6.example"}`, "0-other": `{"host": "7.example", "doors": [], "opened": true}`,
	}
	s := newStreet(t, rows, "apply", "1m")
	s.is("a shop@1 shop@2 shop@3 shops", "1.example:1 true 2.example:2 true 3.example:3 true")
	want := map[string]string{
		"4": "there are 3 instances already", "no/name": "its key can't be part of a name", "none": "it is no JSON object",
		"0-lacks": "it has no field doors, which config.doors wants", "0-other": "its field doors is no string, number or boolean",
	}
	for _, m := range s.Misfits() {
		if text, ok := want[m.Key]; m.Entry != "shop" || !ok || !strings.Contains(m.Reason, text) {
			t.Errorf("%+v", m)
		}
		delete(want, m.Key)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	delete(rows, "2")
	s.write(rows)
	s.is("a shop@1 shop@3 shop@4 shops", "1.example:1 true 3.example:3 true 4.example:4 true")
}

// TestForEachWait: the first revision waits for an instance that says nothing as long as its entry
// says, and no longer.
func TestForEachWait(t *testing.T) {
	began := time.Now()
	s := newStreet(t, map[string]string{"dumb": one("never", 1), "one": one("1.example", 1)}, "apply", "2s")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the first revision took %v", took)
	}
	s.is("a shop@dumb shop@one shops", "1.example:1 true")
	s.write(map[string]string{"dumb": one("2.example", 1), "one": one("1.example", 1)})
	s.is("a shop@dumb shop@one shops", "1.example:1 true 2.example:1 true")
}

// TestForEachFails: an instance that refuses its config fails alone, and a row that changes to what
// is refused leaves what ran before.
func TestForEachFails(t *testing.T) {
	s := newStreet(t, map[string]string{"bad": one("bad", 1), "one": one("1.example", 1)}, "apply", "2s")
	s.is("a shop@bad shop@one shops", "1.example:1 true")
	s.write(map[string]string{"bad": one("2.example", 1), "one": one("bad", 1)})
	s.is("a shop@bad shop@one shops", "1.example:1 true 2.example:1 true")
	for end := time.Now().Add(time.Minute); len(s.History("shop@one")) == 0 ||
		s.history.last("shop@one").now().State != Failed; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v", s.History("shop@one"))
		}
	}
	s.write(map[string]string{"bad": one("2.example", 1), "one": one("3.example", 1)})
	s.is("a shop@bad shop@one shops", "2.example:1 true 3.example:1 true")
}

// TestForEachGuard: the end of an instance is judged as that of an entry is.
func TestForEachGuard(t *testing.T) {
	s := newStreet(t, map[string]string{"one": one("1.example", 1), "two": one("2.example", 2)}, "hold", "1m")
	s.is("a shop@one shop@two shops", "1.example:1 true 2.example:2 true")
	s.write(map[string]string{"one": one("1.example", 2), "two": one("2.example", 2)})
	s.is("a shop@one shop@two shops", "1.example:2 true 2.example:2 true")
	s.write(map[string]string{"two": one("2.example", 2)})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c := s.history.last("shop@one").now(); c.What == doRemove && c.State == Refused {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is refused: %s", s.history.last("shop@one").now().Line())
		}
	}
	s.is("a shop@one shop@two shops", "1.example:2 true 2.example:2 true")
	if _, err := s.Disable(t.Context(), "shop@one", Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	s.is("a shop@two shops", "2.example:2 true")
}

// TestDue: what failed is tried again after a while, which grows, and at once when the row has
// changed.
func TestDue(t *testing.T) {
	d := &desired{running: &running{set: &manifest.Set{}}}
	e := &manifest.Entry{Name: "a@b", Of: "a"}
	changed := &manifest.Entry{Name: "a@b", Of: "a", Config: manifest.JSON(`{}`)}
	now := time.Now()
	due := func(e *manifest.Entry, at time.Duration) bool {
		return len(d.due([]step{{doSwap, e}}, now.Add(at))) > 0
	}
	if !due(e, 0) {
		t.Error("what has not failed is not due")
	}
	d.done(step{doSwap, e}, errors.New("bad"))
	if due(e, 0) || !due(changed, 0) || !due(e, tryAgain+time.Minute) {
		t.Error("after a failure")
	}
	for range 20 {
		d.done(step{doSwap, e}, errors.New("bad"))
	}
	if due(e, tryAgainMost-time.Minute) || !due(e, tryAgainMost+time.Minute) {
		t.Error("after many failures")
	}
	d.running.becomes(d.running.now().With(e))
	d.done(step{doRemove, e}, errors.New("bad"))
	if owed, _ := d.owed(&manifest.Set{}).Get(e.Name); owed != e {
		t.Error("an end that failed is forgotten")
	}
	if len(d.due([]step{{doRemove, e}}, now)) > 0 || len(d.due([]step{{doRemove, e}}, now.Add(tryAgain+time.Minute))) == 0 {
		t.Error("after an end that failed")
	}
	d.done(step{doSwap, e}, fmt.Errorf("no: %w", ErrRefused))
	if _, again := d.next(); again {
		t.Error("what a guard refused is tried again")
	}
}
