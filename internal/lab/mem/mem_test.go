package mem

import "testing"

func TestFabric(t *testing.T) {
	Run(t, nil, func(f *Fabric) {
		a, b, c := f.Node("10.0.0.1"), f.Node("10.0.0.2"), f.Node("10.0.0.3")
		f.Mesh(100, a, b, c)
		h1, h2, h3 := a.Host(100), b.Host(100), c.Host(100)
		f.Mesh(200, a, b)
		other := b.Host(200)

		h1.Send(ARPRequest(h1, h2.IP))
		h2.Want(ARPRequest(h1, h2.IP))
		h3.Want(ARPRequest(h1, h2.IP))
		other.Want()

		h2.Send(ARPReply(h2, h1))
		h1.Want(ARPReply(h2, h1))
		h1.Send(Unicast(h1, h2, "known now"))
		h2.Want(Unicast(h1, h2, "known now"))
		f.WantQuiet()
		for _, n := range []*Node{a, b, c} {
			n.WantDrops(nil)
		}
	})
}
