package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// authorities stands for a plugin that makes certificates of an hour, and its rows.
type authorities struct {
	mu      sync.Mutex
	offered bool
	rows    [][]byte
	fails   error
	// stolen: the answer is of another key.
	stolen bool
	asked  []time.Time

	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newAuthorities(t *testing.T) *authorities {
	t.Helper()
	a := &authorities{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.root = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.root, a.root, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authorities) Offers(string) (yes, perhaps bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offered, false
}

func (a *authorities) Rows(string) (rows []*pb.Row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Reverse(a.rows) // they come in any order
	for _, der := range a.rows {
		rows = append(rows, &pb.Row{Payload: der})
	}
	return rows
}

func (a *authorities) Call(_ context.Context, m *pb.Call) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, time.Now())
	if a.fails != nil {
		return nil, a.fails
	}
	if !m.Core || len(m.Identities) > 0 {
		return nil, errors.New("it is not the core that calls")
	}
	r, err := x509.ParseCertificateRequest(m.Request)
	if err != nil {
		return nil, err
	}
	key := r.PublicKey
	if a.stolen {
		key = a.key.Public()
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), DNSNames: r.DNSNames}
	return x509.CreateCertificate(rand.Reader, leaf, a.root, key, a.key)
}

// set changes it.
func (a *authorities) set(edit func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edit()
}

// times are when it was asked, since a moment.
func (a *authorities) times(since time.Time) (all []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.asked {
		all = append(all, at.Sub(since).Round(time.Second))
	}
	return all
}

// TestIssued: the secure port's certificate is made once somebody offers it, anew when half of its
// life is over and when the authorities change, and what fails is tried again, ever more seldom,
// while the last one stays.
func TestIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthorities(t)
		i := newIssued(Issuer{
			Names: []string{"here.example"}, Request: func(csr []byte) ([]byte, error) { return csr, nil },
			Chain: func(response []byte) ([][]byte, error) { return [][]byte{response}, nil },
			Authorities: func(payload []byte) (Authorities, error) {
				return Authorities{Domain: "d", Local: true, Certificates: [][]byte{payload}}, nil
			},
		}, a, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.run(ctx)
		began := time.Now()
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(time.Minute)
		own, _ := i.now()
		if made, why := i.pending(); own != nil || len(a.times(began)) > 0 || made || why != "" {
			t.Errorf("nobody offers it: %v, %v, %t, %q", own, a.times(began), made, why)
		}
		a.set(func() { a.offered, a.rows = true, [][]byte{a.root.Raw} })
		pass(time.Minute)
		first, _ := i.now()
		if first == nil || first.Leaf.DNSNames[0] != "here.example" {
			t.Fatalf("it has %v", first)
		}
		pass(30 * time.Minute)
		second, _ := i.now()
		if second == first {
			t.Error("half of its life is over")
		}
		other := newAuthorities(t)
		a.set(func() { a.rows = [][]byte{a.root.Raw, other.root.Raw} })
		pass(2 * time.Second)
		third, pool := i.now()
		if third == second {
			t.Error("the authorities have changed")
		}
		if pass(time.Minute); len(a.times(began)) != 3 {
			t.Errorf("asked at %v: they are the same, in another order", a.times(began))
		}
		if _, err := other.root.Verify(x509.VerifyOptions{Roots: pool.pool, CurrentTime: time.Now()}); err != nil {
			t.Errorf("the second one is not believed: %v", err)
		}
		for what, edit := range map[string]func(){
			"it fails":        func() { a.fails = errors.New("no") },
			"it is another's": func() { a.fails, a.stolen = nil, true },
			"no authorities":  func() { a.stolen, a.rows = false, [][]byte{{1}} },
		} {
			a.set(edit)
			pass(40 * time.Minute)
			if own, _ := i.now(); own == nil {
				t.Errorf("%s: there is none any more", what)
			}
			a.set(func() { a.fails, a.stolen, a.rows = nil, false, [][]byte{a.root.Raw} })
			pass(time.Minute)
		}
		a.set(func() { a.asked, a.fails = nil, errors.New("no") })
		began = time.Now()
		pass(45 * time.Minute)
		tries := a.times(began)
		if len(tries) < 20 || len(tries) > 90 {
			t.Errorf("it was tried %d times", len(tries))
		}
		var pauses []time.Duration
		for n := 1; n < 7; n++ {
			pauses = append(pauses, tries[n]-tries[n-1])
		}
		if !slices.IsSorted(pauses) || pauses[5] < 25*time.Second {
			t.Errorf("the pauses are %v", pauses)
		}
		cancel()
		synctest.Wait()
	})
}
