package index

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

type num uint32

func (n num) Hash(*mix.Key) uint64 { return uint64(n) }

func TestModel(t *testing.T) {
	var m Map[num, int]
	model := map[num]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		k := num(rng.IntN(500)) << (rng.IntN(3) * 10)
		switch rng.IntN(3) {
		case 0:
			m.Store(k, i)
			model[k] = i
		case 1:
			m.Delete(k)
			delete(model, k)
		case 2:
			v, ok := m.Load(k)
			if mv, mok := model[k]; v != mv || ok != mok {
				t.Fatalf("Load(%d) = %d, %v; want %d, %v", k, v, ok, mv, mok)
			}
		}
		if i%10_000 == 0 {
			n := 0
			for k, v := range m.All() {
				if model[k] != v {
					t.Fatalf("All: %d = %d, want %d", k, v, model[k])
				}
				n++
			}
			if n != len(model) || m.Len() != n {
				t.Fatalf("All yields %d, Len %d, want %d", n, m.Len(), len(model))
			}
		}
	}
	if s := len(m.arr.Load().slots); s > 8192 {
		t.Errorf("%d slots for at most 1500 keys: deleted keys are not reclaimed", s)
	}
}

// A key that is never deleted is found at every moment, whatever happens around it.
func TestReadersDuringChange(t *testing.T) {
	var m Map[num, num]
	const fixed = 1 << 20
	m.Store(fixed, fixed)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if v, ok := m.Load(fixed); !ok || v != fixed {
				t.Errorf("Load = %d, %v", v, ok)
				return
			}
			for k := range num(64) {
				if v, ok := m.Load(k); ok && v != k {
					t.Errorf("Load(%d) = %d", k, v)
					return
				}
			}
		}
	})
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		k := num(rng.IntN(2000))
		if rng.IntN(2) == 0 {
			m.Store(k, k)
		} else {
			m.Delete(k)
		}
	}
	close(stop)
	wg.Wait()
}

func TestLoadAllocatesNothing(t *testing.T) {
	var m Map[num, *int]
	for k := range num(1000) {
		m.Store(k, new(int))
	}
	if n := testing.AllocsPerRun(100, func() { m.Load(77) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLoad(b *testing.B) {
	var m Map[num, *int]
	for k := range num(1000) {
		m.Store(k, new(int))
	}
	k := num(0)
	for b.Loop() {
		k = (k + 1) & 511
		if _, ok := m.Load(k); !ok {
			b.Fatal("missing")
		}
	}
}

type pair mixtest.Word

func (p pair) Hash(secret *mix.Key) uint64 { return secret.Hash128(p.Hi, p.Lo) }

// Keys that a stranger has chosen lie where keys at random would.
func TestChosenKeys(t *testing.T) {
	all := mixtest.Word{Hi: ^uint64(0), Lo: ^uint64(0)}
	mixtest.Table(t, all, mixtest.Word{}, func(k *mix.Key, w mixtest.Word) uint64 {
		return pair(w).Hash(k) * spread >> (64 - 11) // 1024 keys in 2048 slots
	})
	var m, n Map[pair, int]
	m.Store(pair{}, 1)
	n.Store(pair{}, 1)
	if m.arr.Load().secret == n.arr.Load().secret {
		t.Error("two maps have one secret")
	}
}
