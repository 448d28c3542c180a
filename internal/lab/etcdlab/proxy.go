package etcdlab

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy is a way to an etcd that can be cut.
type Proxy struct {
	Addr string

	to    string
	l     net.Listener
	tasks sync.WaitGroup

	mu     sync.Mutex
	how    state
	wake   *sync.Cond
	conns  map[net.Conn]struct{}
	closed bool
}

type state int

const (
	whole  state = iota
	cut          // connections are closed, new ones as well
	silent       // nothing passes, and nobody is told
	mute         // requests pass, answers do not
)

// NewProxy makes a way to an address. It ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	return ProxyIn(t, to, "127.0.0.1", func(f func()) { f() })
}

// ProxyIn is NewProxy from an address of a host, whose method Do in is.
func ProxyIn(t testing.TB, to, from string, in func(func())) *Proxy {
	t.Helper()
	var l net.Listener
	var err error
	in(func() { l, err = net.Listen("tcp", net.JoinHostPort(from, "0")) })
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: to, l: l, conns: map[net.Conn]struct{}{}}
	p.wake = sync.NewCond(&p.mu)
	p.tasks.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		l.Close()
		p.Cut()
		p.tasks.Wait()
	})
	return p
}

// Cut closes all connections, and refuses new ones.
func (p *Proxy) Cut() { p.set(cut) }

// Silence lets nothing through, as a firewall that drops.
func (p *Proxy) Silence() { p.set(silent) }

// Mute lets requests through, but no answers.
func (p *Proxy) Mute() { p.set(mute) }

// Heal ends Cut and Silence. What was sent during Silence arrives.
func (p *Proxy) Heal() { p.set(whole) }

func (p *Proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.how = s
	if s == cut {
		for c := range p.conns {
			c.Close()
		}
	}
	p.wake.Broadcast()
}

// pass waits while nothing passes in a direction, and reports whether it does now.
func (p *Proxy) pass(answers bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.how == silent || p.how == mute && answers) && !p.closed {
		p.wake.Wait()
	}
	return p.how != cut && !p.closed
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.how == cut || p.closed {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		if p.keep(in) {
			p.tasks.Go(func() { p.join(in) })
		}
	}
}

func (p *Proxy) join(in net.Conn) {
	defer p.drop(in)
	if !p.pass(false) {
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil || !p.keep(out) {
		return
	}
	defer p.drop(out)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer in.Close()
			defer out.Close()
			b := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(b)
				if n == 0 && err != nil || !p.pass(way[0] == out) {
					return
				}
				if _, err := way[1].Write(b[:n]); err != nil && err != io.EOF {
					return
				}
			}
		})
	}
	both.Wait()
}

func (p *Proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
