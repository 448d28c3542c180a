package memory

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func TestReaderStates(t *testing.T) {
	underlaytest.States(t, func(*underlaytest.Veth) {}, map[string]underlaytest.Kind{
		"memory": {Except: []underlaytest.State{underlaytest.BackOff}, Open: func(v *underlaytest.Veth, _ int) *underlaytest.Subject {
			n := NewNetwork(nil)
			a, b := member(v.T, n, v.At(1, 4789).String(), nil), member(v.T, n, v.At(2, 4789).String(), nil)
			run, _ := underlaytest.RunOf(128*8, 8, 0, 0, v.End(1))
			return &underlaytest.Subject{U: a, R: a.Readers()[0], Rest: func() bool { return a.boxes[0].Len() > 0 }, Feed: func() { send(v.T, b, run) }}
		}},
	})
}
