package icmperr

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// However many workers ask at once, exactly the limit is counted.
func TestTakeConcurrently(t *testing.T) {
	var w atomic.Uint64
	var granted atomic.Uint32
	for second := range frame.Tick(20) {
		var g sync.WaitGroup
		for worker := range 4 {
			g.Go(func() {
				for range 500 {
					if take(&w, second-frame.Tick(worker&1), 100) {
						granted.Add(1)
					}
				}
			})
		}
		g.Wait()
		// Half of the workers are a second behind, which has nothing left.
		if n := granted.Swap(0); n != 100 {
			t.Fatalf("second %d: %d granted", second, n)
		}
	}
	w.Store(0xffff_ffff<<32 | 100) // the clock wraps
	if !take(&w, 0, 100) || take(&w, 0xffff_ffff, 1) {
		t.Errorf("second 0 after the last: %#x", w.Load())
	}
}

// Senders spread over the words.
func TestSpread(t *testing.T) {
	var l Limiter
	l.Init(1, MaxRate)
	n, words := 0, limitSets*len(l.senders[0])
	for i := range words {
		if l.Allow([]byte{10, 1, byte(i >> 8), byte(i)}, 7, frame.Dest(i), 0) {
			n++
		}
	}
	if n < words/2 { // more are expected of a random hash
		t.Errorf("%d senders share %d words", words, n)
	}
}

// However many workers ask at once for however many senders of one set, each gets its limit; a fifth one shares.
func TestSendersConcurrently(t *testing.T) {
	var l Limiter
	l.Init(100, MaxRate)
	for second := range frame.Tick(20) {
		var granted [5]atomic.Uint32
		var g sync.WaitGroup
		for worker := range 4 {
			now := second - min(second, frame.Tick(worker&1)) // half of the workers are a second behind, which has nothing left
			g.Go(func() {
				for k := range 2000 {
					if n := (k + worker) % 5; l.takeSender(uint64(n+1)<<48|7, now) {
						granted[n].Add(1)
					}
				}
			})
		}
		g.Wait()
		sum := uint32(0)
		for n := range granted {
			got := granted[n].Load()
			if sum += got; got > 100 {
				t.Fatalf("second %d: sender %d: %d granted", second, n, got)
			}
		}
		if sum != 400 {
			t.Fatalf("second %d: %d granted by four words", second, sum)
		}
	}
}

// One port that uses up its share of a second, by few senders or by many, takes nothing from hosts elsewhere but one in
// ten thousand, which has four of its senders in its set and must share with one.
func TestSendersElsewhere(t *testing.T) {
	const rounds, hosts = 200, 50
	for _, each := range []int{1, DefaultPerSender} {
		denied := 0
		for round := range frame.Tick(rounds) {
			var l Limiter
			l.Init(0, 0)
			ask := func(network, host, times int) bool {
				for range times {
					if !l.Allow([]byte{10, byte(network), byte(host >> 8), byte(host)}, 7, frame.NewDest(uint16(network), 0), round) {
						return false
					}
				}
				return true
			}
			for i := range DefaultTotal / 2 / each {
				ask(1, i, each)
			}
			for i := range hosts {
				if !ask(2, i, DefaultPerSender-3) {
					denied++
				}
			}
		}
		if denied > rounds*hosts/1000 {
			t.Errorf("%d answers to each sender of a port: %d of %d hosts elsewhere got none", each, denied, rounds*hosts)
		}
	}
}

func TestLimiterHash(t *testing.T) {
	l := Limiter{Seed: mix.New()}
	if l.hash([]byte{10, 1, 0, 0}, 7, 1) == l.hash([]byte{10, 1, 15: 0}, 7, 1) {
		t.Error("10.1.0.0 and a01:: share a word")
	}
}

// Other rates hold from the next answer on, in the second that there is too, and senders keep
// their words.
func TestSet(t *testing.T) {
	var l Limiter
	l.Init(5, 100)
	seed := l.Seed
	ask := func(n int) (granted int) {
		for range n {
			if l.Allow([]byte{10, 0, 0, 1}, 7, 1<<16, 3) {
				granted++
			}
		}
		return granted
	}
	for _, c := range []struct{ perSender, total, asked, want int }{
		{5, 100, 3, 3},   // three in all
		{2, 100, 9, 0},   // which are more than this allows
		{4, 100, 9, 1},   // four
		{9, 100, 2, 2},   // six
		{9, 13, 9, 1},    // half of the total, seven
		{0, 0, 99, 3},    // ten, the default
		{99, 99, 99, 40}, // fifty
	} {
		l.Set(c.perSender, c.total)
		if n := ask(c.asked); n != c.want {
			t.Errorf("%+v: %d granted", c, n)
		}
	}
	if l.Seed != seed {
		t.Error("senders have other words")
	}
}

// Who counts and who sets need not know of each other.
func TestSetUnderTraffic(t *testing.T) {
	var l Limiter
	l.Init(0, 0)
	var g sync.WaitGroup
	for range 2 {
		g.Go(func() {
			for n := range 2000 {
				l.Allow([]byte{10, 0, 0, byte(n)}, 7, 1<<16, frame.Tick(n/100))
			}
		})
	}
	for n := range 200 {
		l.Set(n, 2*n)
	}
	g.Wait()
}

// One sender gets its share of a second, all of them together theirs, and the next
// second is a new one.
func TestRates(t *testing.T) {
	s := newTooBig(3, 5)
	ask := func(host byte, vni frame.VNI, now frame.Tick) frame.Verdict {
		f := entered(src4(t, 10, 0, 0, host))
		f.VNI, f.From = vni, frame.NewDest(uint16(8*vni)+uint16(host), 0)
		return s.Process(&f, frame.At{MTU: 1464, Tick: now})
	}
	want := func(sent, limited uint64) {
		t.Helper()
		if st := s.Stats(); st.Sent4 != sent || st.Limited != limited {
			t.Errorf("sent %d, limited %d, want %d, %d", st.Sent4, st.Limited, sent, limited)
		}
	}
	for i := range 5 {
		if v := ask(1, 1, 0); (v == frame.Reply) != (i < 3) {
			t.Errorf("frame %d: %v", i, v)
		}
	}
	want(3, 2)
	ask(1, 2, 0) // the same address in another network
	ask(2, 1, 0)
	want(5, 2)
	ask(3, 1, 0) // beyond the total
	want(5, 3)
	for range 5 {
		ask(1, 1, 1)
	}
	want(8, 5)
	ask(2, 1, 0) // a worker that still lives in the second before counts in this one
	want(9, 5)
	for range 5 {
		ask(2, 1, 0)
	}
	want(10, 9)
}

func TestDefaultRates(t *testing.T) {
	s := newTooBig(0, 0)
	for i := range 2000 {
		f := entered(src4(t, 10, 0, byte(i/20), 1))
		s.Process(&f, frame.At{MTU: 1464})
	}
	// 100 senders, who are at one port, which gets half of the total.
	if st := s.Stats(); st.Sent4 != DefaultTotal/2 || st.Sent4+st.Limited != 2000 {
		t.Errorf("%+v", st)
	}
}
