package offload

import (
	"errors"
	"io"
	"maps"

	"github.com/vxswitch/vxswitch/offload/internal/datapath"
)

// devices has the programs that are attached.
type devices struct {
	dp   *datapath.Datapath
	home *home
	with map[need]io.Closer
}

// attach attaches a program, if it is not.
func (d *devices) attach(n need) error {
	if n.index == 0 || d.with[n] != nil {
		return nil
	}
	var c io.Closer
	err := d.home.do(func() (err error) {
		if n.underlay {
			c, err = d.dp.AttachUnderlay(n.index)
		} else {
			c, err = d.dp.AttachPort(n.index, n.dir)
		}
		return err
	})
	if err != nil {
		return err
	}
	if d.with == nil {
		d.with = map[need]io.Closer{}
	}
	d.with[n] = c
	return nil
}

// tidy detaches what is on devices that have left the network namespace. Another device may have the number by now.
func (d *devices) tidy(x news) {
	maps.DeleteFunc(d.with, func(n need, c io.Closer) bool {
		_, gone := x.gone[n.index]
		if !gone && x.lost {
			_, err := d.home.link.LinkByIndex(n.index)
			gone = err != nil
		}
		if gone {
			c.Close()
		}
		return gone
	})
}

func (d *devices) close() (err error) {
	for _, c := range d.with {
		err = errors.Join(err, c.Close())
	}
	clear(d.with)
	return err
}
