package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/setting/conf"
)

// A plane is a control plane that a section of the file runs. Run ends with ctx, or with an error. What a plane leaves is gone with it,
// unless it is a leaver.
type plane interface {
	comparable
	Run(ctx context.Context) error
}

// A leaver is a plane that leaves something for the next one.
type leaver interface {
	Leave() // the end of Run is for good: the section is removed
}

// States of a section, as vxsctl shows them; some have others, too.
const (
	sectionStarting = "starting" // the store is not read yet, or has nothing for the node
	sectionRunning  = "running"
	sectionStale    = "stale"  // the store is away: packets go where they went
	sectionFailed   = "failed" // another try follows
)

// noSection is the answer about a section that the configuration does not have.
func noSection(name string) error {
	return wrong(http.StatusNotFound, "the configuration has no section %s", name)
}

// troubled is the line of /healthz about a section.
func troubled(name, state string, since time.Time, why string) string {
	return fmt.Sprintf("%s is %s since %s: %s", name, state, since.UTC().Format(time.RFC3339), why)
}

// Pauses after which a plane that has ended with an error is tried again.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// A keeper runs the plane P of a section C for as long as the file has it. A plane that ends with an error leaves the node alone: the
// keeper says so, once for each error, and makes another one after a pause, which grows.
type keeper[C any, P plane] struct {
	name string
	log  *slog.Logger
	make func(*C) (P, error)
	anew func(old, next *C) bool // whether the next plane starts without what the old one leaves; nil: never

	// rest is how long the next plane waits behind the end of one, so that others can forget it.
	rest time.Duration

	// files, if not nil, returns errors in files that a section names, as make does.
	files func(*C) error

	// configure, if not nil, has a plane that runs change to another section, unless anew says that this needs a new one.
	configure func(P, *C) error

	mu    sync.Mutex
	cfg   *C // nil: no section
	stop  func()
	leave bool      // the end of the plane is for good
	ended time.Time // when the last plane did
	state kept[P]
}

// A kept is the state of a plane.
type kept[P plane] struct {
	plane P         // that runs, or ran last; zero if there was none
	err   error     // with which it has ended; nil while it runs
	since time.Time // when it began or ended
	again time.Time // when the next one begins, after an error
}

// config returns the section, nil if there is none.
func (k *keeper[C, P]) config() *C {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg
}

// status returns the state of the section's plane; ok is false without a section.
func (k *keeper[C, P]) status() (s kept[P], ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.cfg != nil
}

// trouble returns a line for /healthz if the plane does not run. What it does not get from others is no trouble, such as a session of BGP
// that is down: it is a peer's as much as ours.
func (k *keeper[C, P]) trouble() string {
	now, ok := k.status()
	if !ok || now.err == nil {
		return ""
	}
	return troubled(k.name, sectionFailed, now.since, oneLine(now.err))
}

// change stops the plane if the section becomes another one. The caller changes the node, and then calls done, which starts the
// new section, or with ok false, if the change has failed, the old one. With reread, a section that stays as it is reads its files again.
func (k *keeper[C, P]) change(next *C, reread bool) (done func(ok bool)) {
	old := k.config()
	if k.stays(next, reread) {
		return func(bool) {}
	}
	anew := old != nil && next != nil && k.anew != nil && k.anew(old, next)
	if k.configure != nil && old != nil && next != nil && !anew {
		return func(ok bool) {
			if ok {
				k.reconfigure(next)
			}
		}
	}
	k.end(next == nil || anew)
	return func(ok bool) {
		if !ok {
			next = old
		}
		k.begin(next)
	}
}

// stays reports whether nothing is to be done for the next section.
func (k *keeper[C, P]) stays(next *C, reread bool) bool {
	return reflect.DeepEqual(k.config(), next) && (!reread || next == nil || k.files == nil || k.configure == nil)
}

// unreadable returns the errors in files of the next section, if it is another one or they are read again.
func (k *keeper[C, P]) unreadable(next *C, reread bool) error {
	if next == nil || k.stays(next, reread) {
		return nil
	}
	return k.withKeys(k.files(next))
}

// withKeys has errors of the section name keys of the file.
func (k *keeper[C, P]) withKeys(err error) error { return conf.Keyed[C](k.name, err) }

// reconfigure has the plane that runs change. If none does, or it cannot, one is made.
func (k *keeper[C, P]) reconfigure(next *C) {
	k.mu.Lock()
	k.cfg = next
	p, none := k.state.plane, *new(P)
	runs := p != none && k.state.err == nil
	k.mu.Unlock()
	if runs {
		err := k.configure(p, next)
		if err == nil {
			return
		}
		k.log.Error(k.name+" does not take its new settings while it runs, and begins anew", "err", oneLine(err))
	}
	k.end(false)
	k.begin(next)
}

// begin starts the plane of a section.
func (k *keeper[C, P]) begin(cfg *C) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cfg, k.state, k.stop, k.leave = cfg, kept[P]{since: time.Now()}, nil, false
	if cfg == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	rest := time.Until(k.ended.Add(k.rest))
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(rest):
			k.run(ctx)
		}
	})
	k.stop = func() { cancel(); running.Wait() }
}

// end stops the plane, and waits for it; for good if the section is removed.
func (k *keeper[C, P]) end(forGood bool) {
	k.mu.Lock()
	stop := k.stop
	k.stop, k.leave = nil, forGood
	k.leaving()
	k.mu.Unlock()
	if stop != nil {
		stop()
		k.mu.Lock()
		k.ended = time.Now()
		k.mu.Unlock()
	}
}

// leaving tells the plane if its end is for good. k.mu is held.
func (k *keeper[C, P]) leaving() {
	if p, ok := any(k.state.plane).(leaver); ok && k.leave && k.state.plane != *new(P) {
		p.Leave()
	}
}

func (k *keeper[C, P]) run(ctx context.Context) {
	said := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		begun := time.Now()
		p, err := k.make(k.config())
		if err == nil {
			k.setState(kept[P]{plane: p, since: begun})
			err = p.Run(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case time.Since(begun) > lastPause:
			pause, said = firstPause, ""
		}
		if text := oneLine(err); text != said {
			k.log.Error(k.name+" ends; the node goes on, and it is tried again", "err", text)
			said = text
		}
		k.setState(kept[P]{plane: p, err: err, since: time.Now(), again: time.Now().Add(pause)})
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// setState sets the state, and tells a plane that is new if its end is for good.
func (k *keeper[C, P]) setState(s kept[P]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
	k.leaving()
}
