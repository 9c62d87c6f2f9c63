package gatewayapi

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is this test binary in the place of CoreDNS, which one of the suite's tests asks a
// question: any answer will do.
const nameServer = "/coredns"

// answerNames answers questions by UDP, that there is nothing of that name, until it is killed.
func answerNames() {
	c, err := net.ListenPacket("udp", ":53")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	b := make([]byte, 1<<12)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || m.Response {
			continue
		}
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RCode: dnsmessage.RCodeNameError}, Questions: m.Questions}
		if text, err := answer.Pack(); err == nil {
			_, _ = c.WriteTo(text, from)
		}
	}
}
