package node

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
)

// domain is the cluster's.
const domain = ".svc.cluster.local."

// answerNames answers pods' questions for names of services, which stand for ClusterIPs, or for the
// ready pods of a service without one.
// Source: https://github.com/kubernetes/dns/blob/master/docs/specification.md
func (n *Node) answerNames(t testing.TB) {
	t.Helper()
	l, err := net.ListenPacket("udp", net.JoinHostPort(Address, "53"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		question := make([]byte, 1<<12)
		for {
			size, from, err := l.ReadFrom(question)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			if answer := n.answer(question[:size]); answer != nil {
				_, _ = l.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
}

// answer is nil for what isn't a question.
func (n *Node) answer(text []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(text)
	if err != nil || head.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	addresses, there := n.resolve(strings.ToLower(q.Name.String()))
	head.Response, head.Authoritative, head.RecursionAvailable = true, true, true
	if !there {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, head)
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	for _, a := range addresses {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			err = b.AResource(h, dnsmessage.AResource{A: a.As4()})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			err = b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.As16()})
		}
		if err != nil {
			return nil
		}
	}
	answer, err := b.Finish()
	if err != nil {
		return nil
	}
	return answer
}

// resolve finds a service's addresses.
func (n *Node) resolve(host string) (addresses []netip.Addr, there bool) {
	name, is := strings.CutSuffix(host, domain)
	service, namespace, also := strings.Cut(name, ".")
	if !is || !also {
		return nil, false
	}
	o, there, _ := n.services.GetByKey(namespace + "/" + service)
	if !there {
		return nil, false
	}
	s := o.(*corev1.Service)
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		for _, p := range n.behind(s) {
			addresses = append(addresses, p.ip)
		}
		return addresses, true
	}
	for _, text := range s.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, a)
		}
	}
	return addresses, true
}
