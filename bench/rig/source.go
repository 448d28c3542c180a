package rig

import (
	"net"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// A Source is a Reader that hands out the same packets again and again, or what Fill
// makes, for as many batches as it is told, and then waits. Its fields may be changed
// between two calls of Run.
type Source struct {
	Packets [][]byte
	Fill    func(b *frame.Batch) // instead of Packets: borrows frame.MaxBatch frames
	Tunnel  bool                 // Outer is to be set, as an underlay does
	Outer   frame.Outer

	next   int
	runs   chan int
	left   int
	done   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// NewSource returns a source without packets.
func NewSource() *Source {
	return &Source{runs: make(chan int), done: make(chan struct{}), closed: make(chan struct{})}
}

// Run has the worker handle n batches and waits for the last.
func (s *Source) Run(n int) {
	s.runs <- n
	<-s.done
}

// Rewind has the next batch begin with the first of Packets.
func (s *Source) Rewind() { s.next = 0 }

// Read fills b with frame.MaxBatch packets.
func (s *Source) Read(b *frame.Batch) error {
	b.Reset()
	if s.left == 0 {
		select {
		case s.left = <-s.runs:
		case <-s.closed:
			return net.ErrClosed
		}
	} else if s.left--; s.left == 0 {
		s.done <- struct{}{}
		return s.Read(b)
	}
	if s.Fill != nil {
		s.Fill(b)
		for i := range b.Outer {
			b.Outer[i] = s.Outer
		}
		return nil
	}
	for range frame.MaxBatch {
		p := s.Packets[s.next]
		if s.next++; s.next == len(s.Packets) {
			s.next = 0
		}
		b.Borrow(p, 0, len(p))
		if s.Tunnel {
			b.Outer[len(b.Outer)-1] = s.Outer
		}
	}
	return nil
}

// Close makes Read return net.ErrClosed.
func (s *Source) Close() error { s.once.Do(func() { close(s.closed) }); return nil }
