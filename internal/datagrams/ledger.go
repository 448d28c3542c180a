package datagrams

import "github.com/vxswitch/vxswitch/frame"

// MaxWindow is how many datagrams a Sender handles at once.
const MaxWindow = 64

// A Copy describes the content of a message: a copy of a datagram, or a piece of one.
type Copy struct {
	D    uint8  // index in the window
	Seg  uint16 // of a run, else 0
	Segs int32  // datagrams on the wire
	To   int32  // index of the datagram's To
	Off  int32  // offset in the payload, if the Sender needs it
}

// A Ledger has the datagrams of a Sender and accounts for them.
type Ledger struct {
	Window []frame.Datagram
	Sum    Sum // of one Send
	Tx     Tx

	last Copy // lost last
}

// Send calls f for each window of the datagrams.
func (l *Ledger) Send(ds []frame.Datagram, f func()) {
	for len(ds) > 0 {
		n := min(MaxWindow, len(ds))
		l.Window, l.last = ds[:n:n], Copy{To: -1}
		f()
		ds = ds[n:]
	}
	l.Window = nil
	l.Tx.Add(&l.Sum)
}

// Sent counts messages that the kernel has taken.
func (l *Ledger) Sent(who []Copy) {
	for i := range who {
		l.Sum.Sent(int(who[i].Segs))
	}
}

// Lose counts the content of a message as lost. If several consecutive pieces of a run's copy are lost, that is one
// lost copy.
func (l *Ledger) Lose(c Copy, why frame.Reason) {
	if c.D != l.last.D || c.To != l.last.To {
		Lose(&l.Window[c.D], why)
	}
	l.last = c
	l.Tx.Lost[why].Add(uint64(c.Segs))
}

// LoseAll counts every copy of datagram i as lost.
func (l *Ledger) LoseAll(i uint8, why frame.Reason) {
	d := &l.Window[i]
	segs := Segments(d)
	for range d.To {
		Lose(d, why)
		l.Tx.Lost[why].Add(uint64(segs))
	}
}
