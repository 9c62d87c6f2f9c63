package login

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
)

func enter(t *testing.T, l *Logins, by string) Entered {
	t.Helper()
	text, err := l.Code(audit.Who{By: by})
	if err != nil {
		t.Fatal(err)
	}
	e, ok := l.Enter(text)
	if !ok || e.Who.By != by {
		t.Fatalf("%+v %v", e, ok)
	}
	return e
}

// TestEnter: a code counts once; a cookie counts with its own token alone, until somebody leaves.
func TestEnter(t *testing.T) {
	l := New()
	text, err := l.Code(audit.Who{By: "a"})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := l.Enter(text)
	if !ok {
		t.Fatal("the code does not count")
	}
	if _, ok := l.Enter(text); ok {
		t.Error("the code counts twice")
	}
	b := enter(t, l, "b")
	for _, c := range []struct {
		cookie, token string
		ok            bool
	}{
		{a.Cookie, a.Token, true}, {b.Cookie, b.Token, true}, {a.Cookie, b.Token, false}, {a.Cookie, "", false}, {"", a.Token, false},
		{a.Token, a.Cookie, false}, {text, a.Token, false}, {"", "", false},
	} {
		if _, ok := l.Who(c.cookie, c.token); ok != c.ok {
			t.Errorf("%+v: %v", c, ok)
		}
	}
	l.Leave(a.Cookie)
	if _, ok := l.Who(a.Cookie, a.Token); ok {
		t.Error("the login goes on after its end")
	}
	if who, ok := l.Who(b.Cookie, b.Token); !ok || who.By != "b" {
		t.Error("another's login ended with it")
	}
}

// TestEnds: codes end soon, logins when nothing is done, and all of them some time.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		text, _ := l.Code(audit.Who{})
		time.Sleep(codeLife + time.Second)
		if _, ok := l.Enter(text); ok {
			t.Error("the code counts still")
		}
		idler, busy := enter(t, l, "idler"), enter(t, l, "busy")
		for range int(longest/idle) * 2 {
			if _, ok := l.Who(busy.Cookie, busy.Token); !ok {
				t.Fatal("the login ended while it was used")
			}
			time.Sleep(idle / 2)
		}
		if _, ok := l.Who(idler.Cookie, idler.Token); ok {
			t.Error("a login that does nothing goes on")
		}
		time.Sleep(time.Second)
		if _, ok := l.Who(busy.Cookie, busy.Token); ok {
			t.Error("a login goes on for ever")
		}
	})
}

// TestMany: codes that nobody uses, and logins, are bounded; the oldest login gives way.
func TestMany(t *testing.T) {
	l := New()
	first := enter(t, l, "first")
	for range most {
		enter(t, l, "other")
	}
	if _, ok := l.Who(first.Cookie, first.Token); ok || len(l.logins) != most {
		t.Errorf("%d logins", len(l.logins))
	}
	for range most {
		if _, err := l.Code(audit.Who{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Code(audit.Who{}); err == nil {
		t.Error("codes are not bounded")
	}
}
