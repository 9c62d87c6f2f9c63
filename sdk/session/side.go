package session

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// side is what differs between the two ends of a link.
type side[Out, In Message] struct {
	fresh  func() In
	credit func(bytes uint64) Out
	// free reports whether a message that is sent costs no credit.
	free func(Out) bool
	// look says what a received message is to the link.
	look func(In) sort[Out]
	// sent and received, which may be nil, watch.
	sent     func(Out, int)
	received func(In, int)
}

// sort is what a received message is to the link.
type sort[Out Message] struct {
	unknown bool
	// free: it costs no credit.
	free bool
	// mine: the link deals with it, the receiver never sees it.
	mine bool
	// progress: a sign that work goes on.
	progress bool
	credit   uint64
	// reply is sent at once if hasReply.
	reply    Out
	hasReply bool
}

func coreSide() side[*pb.FromCore, *pb.FromPlugin] {
	return side[*pb.FromCore, *pb.FromPlugin]{
		fresh:  func() *pb.FromPlugin { return new(pb.FromPlugin) },
		credit: func(n uint64) *pb.FromCore { return &pb.FromCore{Credit: &pb.Credit{Bytes: n}} },
		free:   freeFromCore,
		look:   lookFromPlugin,
	}
}

func pluginSide() side[*pb.FromPlugin, *pb.FromCore] {
	return side[*pb.FromPlugin, *pb.FromCore]{
		fresh:  func() *pb.FromCore { return new(pb.FromCore) },
		credit: func(n uint64) *pb.FromPlugin { return &pb.FromPlugin{Credit: &pb.Credit{Bytes: n}} },
		free:   freeFromPlugin,
		look:   lookFromCore,
	}
}

func freeFromCore(m *pb.FromCore) bool {
	return m.Credit != nil || m.Ping != nil || m.Hello != nil || m.Drain != nil
}

func freeFromPlugin(m *pb.FromPlugin) bool {
	return m.Credit != nil || m.Pong != nil || m.Ready != nil || m.Refused != nil || m.Progress != nil
}

func lookFromPlugin(m *pb.FromPlugin) sort[*pb.FromCore] {
	s := sort[*pb.FromCore]{unknown: *m == pb.FromPlugin{}, free: freeFromPlugin(m)}
	switch {
	case m.Credit != nil:
		s.mine, s.credit = true, m.Credit.Bytes
	case m.Pong != nil:
		s.mine = true
	case m.Progress != nil:
		s.mine, s.progress = true, true
	case m.Done != nil, m.Bodies != nil, m.Rows != nil:
		s.progress = true
	}
	return s
}

func lookFromCore(m *pb.FromCore) sort[*pb.FromPlugin] {
	s := sort[*pb.FromPlugin]{unknown: *m == pb.FromCore{}, free: freeFromCore(m)}
	switch {
	case m.Credit != nil:
		s.mine, s.credit = true, m.Credit.Bytes
	case m.Ping != nil:
		s.mine, s.hasReply = true, true
		s.reply = &pb.FromPlugin{Pong: &pb.Pong{Id: m.Ping.Id}}
	}
	return s
}
