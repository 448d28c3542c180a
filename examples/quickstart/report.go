package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/vxswitch/vxswitch/fdb"
)

// report prints each site's FDB and counters.
func (f *fabric) report(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFDB\tVNI\tMAC\tdest\torigin")
	for _, s := range f.sites {
		for _, vsi := range s.Switch().VSIs() {
			byMAC := func(a, b fdb.Entry) int { return cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()) }
			for _, e := range slices.SortedFunc(vsi.FDB().All(), byMAC) {
				fmt.Fprintf(w, "%s\t%d\t%v\t%s\t%v\n", s.name, vsi.VNI(), e.MAC, s.Switch().Name(e.Dest), e.Origin)
			}
		}
	}
	fmt.Fprintln(w, "\nneighbours\tVNI\tIP\tMAC\torigin")
	for _, s := range f.sites {
		for _, vsi := range s.Switch().VSIs() {
			for e := range s.Neighbours(vsi.VNI()).Table().All() {
				fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\n", s.name, vsi.VNI(), e.IP, e.MAC, e.Origin)
			}
		}
	}
	fmt.Fprintln(w, "\nport\t\treceived\tsent\tforwarded\tflooded\tdropped")
	for _, s := range f.sites {
		for _, p := range s.Switch().Stats().Ports {
			if p.Rx.Frames+p.Tx.Frames > 0 {
				flooded := p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", s.name, p.Name, p.Rx.Frames, p.Tx.Frames, p.Forwarded, flooded, p.RxDrops.Total())
			}
		}
	}
	fmt.Fprintln(w, "\ndrops\t\treason\tframes")
	for _, s := range f.sites {
		for _, p := range s.Switch().Stats().Ports {
			for reason, count := range p.RxDrops.All() {
				fmt.Fprintf(w, "%s\t%s\t%v\t%d\n", s.name, p.Name, reason, count)
			}
		}
	}
	return w.Flush()
}
