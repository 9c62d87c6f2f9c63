//go:build !wasip1

// Package listen gives a plugin the sockets that its entry in plugins.yaml asks for (`listen`). The
// core opens them and keeps them open while the plugin's process ends and another one begins: what
// comes meanwhile waits in them, and the next process has it.
package listen

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Env is the variable in which the core says which sockets a process has: NETWORK://ADDRESS=NUMBER,
// separated by commas, with the number of the descriptor.
const Env = "COXSWAIN_LISTEN"

// Socket is one that the core opened. Of Packets and Streams one is there: the former of udp, the
// latter of tcp. Closing them leaves the core's own open.
type Socket struct {
	// Address is the entry's, such as udp://127.0.0.1:53.
	Address string
	Packets net.PacketConn
	Streams net.Listener
}

// Given takes over the sockets that the core gave this process, in the order of the entry; none
// without `listen`. It is for one call in a process's life.
func Given() ([]Socket, error) { return read(os.Getenv(Env)) }

func read(text string) ([]Socket, error) {
	var all []Socket
	for _, part := range strings.Split(text, ",") {
		if part == "" {
			continue
		}
		address, number, _ := strings.Cut(part, "=")
		fd, err := strconv.Atoi(number)
		if err != nil || fd < 3 {
			return all, fmt.Errorf("%s: %q has no number of a descriptor", Env, part)
		}
		s, err := open(address, os.NewFile(uintptr(fd), address))
		if err != nil {
			return all, fmt.Errorf("the socket %s: %w", address, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// open makes a socket of a file, which it closes: what is left is closed when the process starts
// another one.
func open(address string, file *os.File) (s Socket, err error) {
	s.Address = address
	if strings.HasPrefix(address, "udp:") {
		s.Packets, err = net.FilePacketConn(file)
	} else {
		s.Streams, err = net.FileListener(file)
	}
	_ = file.Close()
	return s, err
}

// Close closes what the process has of the socket.
func (s Socket) Close() {
	if s.Packets != nil {
		_ = s.Packets.Close()
	}
	if s.Streams != nil {
		_ = s.Streams.Close()
	}
}
