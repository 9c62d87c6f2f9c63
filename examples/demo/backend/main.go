// Command backend answers HTTP requests with its version and port. It is one version of the demo's
// service.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "v1", "what it says of itself")
	ports := flag.String("ports", "9101", "ports to listen on, separated by commas; all on 127.0.0.1")
	flag.Parse()
	failed := make(chan error)
	for _, port := range strings.Split(*ports, ",") {
		go func() { failed <- serve(*version, port) }()
	}
	log.Fatal(<-failed)
}

func serve(version, port string) error {
	server := &http.Server{
		Addr:              net.JoinHostPort("127.0.0.1", port),
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "hello from %s, port %s\n", version, port)
		}),
	}
	return server.ListenAndServe()
}
