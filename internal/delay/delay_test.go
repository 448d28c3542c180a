package delay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Items leave when they are due, in the order of a stable sort, whatever is removed meanwhile.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		var q Queue[int]
		var model []*Item[int]
		for i := range 5000 {
			switch rng.IntN(4) {
			case 0, 1:
				model = append(model, q.Put(i, time.Duration(rng.IntN(10))*time.Second))
				slices.SortStableFunc(model, func(a, b *Item[int]) int { return a.Due.Compare(b.Due) })
			case 2:
				if len(model) > 0 {
					at := rng.IntN(len(model))
					if x := model[at]; !q.Remove(x) || q.Remove(x) {
						t.Fatalf("step %d: removed never, or twice", i)
					}
					model = slices.Delete(model, at, at+1)
				}
			case 3:
				time.Sleep(time.Second)
				for x := q.Next(time.Now()); x != nil; x = q.Next(time.Now()) {
					if x != model[0] {
						t.Fatalf("step %d: %d, want %d", i, x.V, model[0].V)
					}
					model = model[1:]
				}
				if len(model) > 0 && !model[0].Due.After(time.Now()) || q.Len() != len(model) || q.First() != append(model, nil)[0] {
					t.Fatalf("step %d: %d wait, want %d", i, q.Len(), len(model))
				}
			}
		}
		if all := q.Clear(); !slices.Equal(all, model) || q.Len() != 0 {
			t.Errorf("%d items, want %d", len(all), len(model))
		}
	})
}
