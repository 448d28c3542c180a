package datapath

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The object is made by "make bpf", for any machine of little endian order.
//
//go:embed bpf/datapath.o
var object []byte

// A Datapath is the loaded programs and their tables. Its methods are safe for concurrent use.
type Datapath struct {
	objects objects
	epochs  []atomic.Uint64
	slots   []Slot
	decapL4 bool // the kernel can decapsulate UDP superframes
	beacon  *os.File
	port    uint16 // of beacons
	mapped  [][]byte

	mu      sync.Mutex
	paths   paths
	deleted bool // something was, since the last grace period
	closed  bool
	tested  [3]*ebpf.Program // for Run
}

// objects is what of the object file is used from Go.
type objects struct {
	PortIn   *ebpf.Program `ebpf:"port_in"`
	PortOut  *ebpf.Program `ebpf:"port_out"`
	TunnelIn *ebpf.Program `ebpf:"tunnel_in"`

	Epochs *ebpf.Map `ebpf:"epochs"`
	Slots  *ebpf.Map `ebpf:"slots"`
	Paths  *ebpf.Map `ebpf:"paths"`
	Out    *ebpf.Map `ebpf:"out"`
	In     *ebpf.Map `ebpf:"in"`
	Tuples *ebpf.Map `ebpf:"tuples"`
	Misses *ebpf.Map `ebpf:"misses"`

	Beacons *ebpf.Map `ebpf:"beacons"`
}

// Load loads the programs and makes the tables: out, in and tuples for as many flows each, epoch [Global] at 1 and the others at 0.
// Frames are carried in the network namespace of the calling thread. The error says in one line why it does not work here.
func Load(flows int) (*Datapath, error) {
	if err := hasGrace(); err != nil {
		return nil, err
	}
	spec, err := specOf(flows)
	if err != nil {
		return nil, err
	}
	d := &Datapath{}
	if d.decapL4, err = probe(spec); err != nil {
		return nil, err
	}
	if err := d.open(spec, 2*flows); err != nil {
		d.Close()
		return nil, err
	}
	d.epochs[Global].Store(1)
	return d, nil
}

func (d *Datapath) open(spec *ebpf.CollectionSpec, slots int) (err error) {
	if d.beacon, err = openBeacon(addresses[0], 0, 0); err != nil {
		return err
	}
	if d.port, err = portOf(d.beacon); err != nil {
		return err
	}
	if err := d.set(spec); err != nil {
		return err
	}
	if err := spec.LoadAndAssign(&d.objects, nil); err != nil {
		return refused(err)
	}
	if err := d.light(d.beacon); err != nil {
		return err
	}
	return d.mapTables(slots)
}

// set sets the variables of the programs.
func (d *Datapath) set(spec *ebpf.CollectionSpec) error {
	for name, v := range map[string]any{"decap_l4": d.decapL4, "beacon_port": bits.ReverseBytes16(d.port)} {
		if err := spec.Variables[name].Set(v); err != nil {
			return fmt.Errorf("datapath: variable %s: %w", name, err)
		}
	}
	return nil
}

// specOf returns the programs, with tables for a number of flows.
func specOf(flows int) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("datapath: object file: %w", err)
	}
	spec.Maps["out"].MaxEntries = uint32(flows)
	spec.Maps["in"].MaxEntries = uint32(flows)
	spec.Maps["tuples"].MaxEntries = uint32(flows)
	spec.Maps["slots"].MaxEntries = uint32(2 * flows)
	spec.Maps["paths"].MaxEntries = uint32(2 * flows)
	return spec, nil
}

// mapTables makes the two arrays memory of this process.
func (d *Datapath) mapTables(slots int) error {
	for _, t := range []struct {
		m    *ebpf.Map
		size int
	}{{d.objects.Epochs, Epochs * 8}, {d.objects.Slots, slots * int(unsafe.Sizeof(Slot{}))}} {
		b, err := unix.Mmap(t.m.FD(), 0, t.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("datapath: mmap of %v: %w", t.m, err)
		}
		d.mapped = append(d.mapped, b)
	}
	d.epochs = unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&d.mapped[0][0])), Epochs)
	d.paths = newPaths(slots)
	d.slots = unsafe.Slice((*Slot)(unsafe.Pointer(&d.mapped[1][0])), slots)
	return nil
}

// Close detaches nothing: whoever attached a program closes that first. After Close the methods must not be called, and
// slots not be used.
func (d *Datapath) Close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for _, b := range d.mapped {
		err = errors.Join(err, unix.Munmap(b))
	}
	d.epochs, d.slots, d.mapped = nil, nil, nil
	o := &d.objects
	for _, p := range append(d.tested[:], o.PortIn, o.PortOut, o.TunnelIn) {
		err = errors.Join(err, p.Close())
	}
	for _, m := range []*ebpf.Map{o.Epochs, o.Slots, o.Paths, o.Out, o.In, o.Tuples, o.Misses, o.Beacons} {
		err = errors.Join(err, m.Close())
	}
	if d.beacon != nil {
		err = errors.Join(err, d.beacon.Close())
	}
	return err
}

// Epoch returns the value of an epoch.
func (d *Datapath) Epoch(i uint32) uint64 { return d.epochs[i].Load() }

// Bump adds one to an epoch and returns its new value: every flow that was validated before is a miss. The tables that
// decisions are made from are written before.
func (d *Datapath) Bump(i uint32) uint64 { return d.epochs[i].Add(1) }

// Slots returns the number of slots: twice that of flows.
func (d *Datapath) Slots() int { return len(d.slots) }

// Slot returns a slot. It is valid until Close.
func (d *Datapath) Slot(i uint32) *Slot { return &d.slots[i] }
