package snoop

import (
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Everything at once: what is left at the end are those who listen.
func TestConcurrent(t *testing.T) {
	l := newLab(t, Config{Limit: 64})
	l.from(port3, asks(host4, 125))
	l.pass(12)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			d := frame.NewDest(uint16(10+w), 0)
			for i := range 300 {
				for _, b := range [][]byte{report3(record(toExclude, numbered(i%20))), report3(record(toInclude, numbered(i%20)))} {
					f := frame.Make(b)
					f.From = d
					l.Process(&f, frame.At{Tick: 12})
					l.Select(&f)
					l.heard(numbered(i % 20))
				}
				l.Left(d)
				for range l.All() {
				}
				l.Stats()
			}
			f := frame.Make(report3(record(toExclude, groupA)))
			f.From = d
			l.Process(&f, frame.At{Tick: 12})
		})
	}
	wg.Go(func() {
		for range 100 {
			l.Housekeep(12)
		}
	})
	wg.Wait()
	l.want("at the end", groupA, port3, frame.NewDest(10, 0), frame.NewDest(11, 0), frame.NewDest(12, 0), frame.NewDest(13, 0))
}
