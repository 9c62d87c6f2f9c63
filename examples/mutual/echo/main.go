// Command echo answers HTTP requests with who its Envoy says is calling.
package main

import (
	"fmt"
	"log"
	"net/http"
	"regexp"
	"time"
)

// caller is the identity in the header by which Envoy names whoever showed a certificate.
var caller = regexp.MustCompile(`URI=(spiffe://[^;,]+)`)

func main() {
	server := &http.Server{
		Addr: "127.0.0.1:7001", ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := "nobody"
			if m := caller.FindStringSubmatch(r.Header.Get("X-Forwarded-Client-Cert")); m != nil {
				who = m[1]
			}
			_, _ = fmt.Fprintf(w, "web is called by %s\n", who)
		}),
	}
	log.Fatal(server.ListenAndServe())
}
