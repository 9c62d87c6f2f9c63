package move

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// roles are what this binary does as the program of a container, by its first argument. None
// returns.
var roles = map[string]func(string){"serve": serve, "call": call}

// lingers is how long a server goes on after it was told to end: until everybody has heard of it,
// as servers in Kubernetes have to.
const lingers = 8 * time.Second

// serve answers requests at an address with whether their client has shown a certificate.
func serve(address string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	s := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%v", strings.Contains(r.Header.Get("X-Forwarded-Client-Cert"), "spiffe://"))
	})}
	go func() { fmt.Println(s.ListenAndServe()); os.Exit(1) }()
	<-told
	<-time.After(lingers)
	os.Exit(0)
}

// pace is the time between two requests of a client.
const pace = 20 * time.Millisecond

// call asks a URL again and again until it is told to end, and notes what came of it: a line for
// what went wrong, and at last, and from time to time, how many were answered.
func call(url string) {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	host, _ := os.Hostname()
	file, err := os.Create(filepath.Join("/results", host))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	good := 0
	for tick := time.NewTicker(pace); ctx.Err() == nil; <-tick.C {
		if err := ask(url); err != nil {
			_, _ = fmt.Fprintf(file, "%s failed: %v\n", time.Now().Format(time.TimeOnly), err)
			continue
		}
		if good++; good%50 == 1 {
			_, _ = fmt.Fprintf(file, "%d\n", good)
		}
	}
	_, _ = fmt.Fprintf(file, "%d\n", good)
	os.Exit(0)
}

// ask dials anew each time: a gateway that ends has no way to tell a client without a sidecar.
func ask(url string) error {
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || string(text) != "true") {
		err = fmt.Errorf("%s %q", answer.Status, text)
	}
	return err
}
