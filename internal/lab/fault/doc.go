// Package fault fails system calls, one after the other, under tests of what opens sockets and
// devices: constructors of ports and underlays, and whatever calls them.
//
//	fault.Each(t, nil, func() error {
//		u, err := underlay.ListenUDP(local, nil)
//		if err != nil {
//			return err
//		}
//		return u.Close()
//	}, nil)
//
// The calls are failed by the kernel (seccomp_unotify(2)), so that nothing in the code under test
// knows of it, those that the standard library makes fail as well, and the data path pays
// nothing. It is one thread whose calls fail, that which runs the function: goroutines that the
// function starts make theirs undisturbed.
//
// Linux on amd64 and arm64, as root; elsewhere the tests are skipped.
package fault
