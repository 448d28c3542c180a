package offload

import (
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/vxswitch/vxswitch/offload/internal/datapath"
)

// devices has the programs that are attached.
type devices struct {
	dp   *datapath.Datapath
	home *home
	with map[need]attached
}

// attached is a program and, where its device has a master, a beacon of its own: the master may be a VRF.
type attached []io.Closer

func (a attached) Close() (err error) {
	for _, c := range a {
		err = errors.Join(err, c.Close())
	}
	return err
}

// attach attaches a program, if it is not.
func (d *devices) attach(n need) error {
	if d.with[n] != nil {
		return nil
	}
	link, err := d.home.link.LinkByIndex(n.index)
	if err != nil {
		return fmt.Errorf("device %d: %w", n.index, err)
	}
	var a attached
	keep := func(c io.Closer, err error) error {
		if err == nil {
			a = append(a, c)
		}
		return err
	}
	err = d.home.do(func() (err error) {
		err = keep(d.dp.Attach(n.index, n.program))
		if err == nil && link.Attrs().MasterIndex != 0 && !d.lit(n.index) {
			err = keep(d.dp.Beacon(n.index))
		}
		return err
	})
	if err != nil {
		return errors.Join(err, a.Close())
	}
	if d.with == nil {
		d.with = map[need]attached{}
	}
	d.with[n] = a
	return nil
}

// lit reports whether a device has a beacon of its own, with another of its programs: they go together.
func (d *devices) lit(index int) bool {
	for n, a := range d.with {
		if n.index == index && len(a) > 1 {
			return true
		}
	}
	return false
}

// tidy detaches what is on devices that have left the network namespace. Another device may have the number by now.
func (d *devices) tidy(x news) {
	maps.DeleteFunc(d.with, func(n need, a attached) bool {
		_, gone := x.gone[n.index]
		if !gone && x.lost {
			_, err := d.home.link.LinkByIndex(n.index)
			gone = err != nil
		}
		if gone {
			a.Close()
		}
		return gone
	})
}

func (d *devices) close() (err error) {
	for _, a := range d.with {
		err = errors.Join(err, a.Close())
	}
	clear(d.with)
	return err
}
