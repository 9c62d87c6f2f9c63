package recording

import "github.com/coxswain-mesh/coxswain/sdk/session"

// Tap returns a carrier of the core that gives each message to add, too, before it goes on. add
// must not change it.
func Tap(c session.Carrier, add func(fromCore bool, frame []byte)) session.Carrier {
	return &tap{c, add}
}

type tap struct {
	session.Carrier
	add func(fromCore bool, frame []byte)
}

func (t *tap) Send(frame []byte) error {
	t.add(true, frame)
	return t.Carrier.Send(frame)
}

func (t *tap) Recv() ([]byte, error) {
	frame, err := t.Carrier.Recv()
	if err == nil {
		t.add(false, frame)
	}
	return frame, err
}
