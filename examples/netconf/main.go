// Netconf lets NETCONF clients (RFC 6241, over SSH as of RFC 6242) configure a node: it is an adapter on the API of vxswitchd, beside
// it. [The page] has its data model, its operations and a walk with a client.
//
// [The page]: https://github.com/vxswitch/vxswitch/blob/main/docs/netconf.md
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/vxswitch/vxswitch/api"
)

const maxSessions = 16

func main() {
	listen := flag.String("listen", "127.0.0.1:830", "`address` to listen on")
	socket := flag.String("socket", api.DefaultSocket, "control `socket` of vxswitchd")
	schema := flag.String("schema", "schema.json", "`file` with what vxswitchd -schema prints")
	host := flag.String("hostkey", "/etc/ssh/ssh_host_ed25519_key", "`file` with the private key of this host")
	keys := flag.String("keys", "authorized_keys", "`file` with the public keys of those who may change the node")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "netconf: %q: takes flags only, see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	s, err := newServer(*socket, *schema, *host, *keys)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", *listen); err == nil {
			fmt.Println("ready", l.Addr())
			err = s.serve(l)
		}
	}
	fmt.Fprintln(os.Stderr, "netconf:", err)
	os.Exit(1)
}

// A server has what sessions share.
type server struct {
	ssh   ssh.ServerConfig
	store *store
	slots chan struct{}

	mu   sync.Mutex
	last uint32 // session ID
}

func newServer(socket, schema, hostKey, keys string) (*server, error) {
	var texts [3][]byte
	for i, f := range [][2]string{{"schema", schema}, {"hostkey", hostKey}, {"keys", keys}} {
		var err error
		if texts[i], err = os.ReadFile(f[1]); err != nil {
			return nil, fmt.Errorf("-%s: %w", f[0], err)
		}
	}
	s := &server{store: &store{node: api.NewClient(socket)}, slots: make(chan struct{}, maxSessions)}
	var err error
	if s.store.schema, err = readSchema(texts[0]); err != nil {
		return nil, fmt.Errorf("-schema: %s: %w", schema, err)
	}
	key, err := ssh.ParsePrivateKey(texts[1])
	if err != nil {
		return nil, fmt.Errorf("-hostkey: %s: %w", hostKey, err)
	}
	s.ssh.AddHostKey(key)
	allowed := map[string]bool{}
	for rest := texts[2]; len(bytes.TrimSpace(rest)) > 0; {
		var k ssh.PublicKey
		if k, _, _, rest, err = ssh.ParseAuthorizedKey(rest); err != nil {
			return nil, fmt.Errorf("-keys: %s: %w", keys, err)
		}
		allowed[string(k.Marshal())] = true
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("-keys: %s: has no key, so that nobody could connect", keys)
	}
	s.ssh.PublicKeyCallback = func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if !allowed[string(k.Marshal())] {
			return nil, errors.New("the key is not among those that may change the node")
		}
		return nil, nil
	}
	return s, nil
}

// serve accepts clients, of which maxSessions may be there at a time.
func (s *server) serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case s.slots <- struct{}{}:
			go func() {
				defer func() { c.Close(); <-s.slots }()
				s.client(c)
			}()
		default:
			c.Close()
		}
	}
}

// client serves the first NETCONF session of an SSH connection.
func (s *server) client(c net.Conn) {
	c.SetDeadline(time.Now().Add(30 * time.Second)) // to say who it is
	conn, channels, requests, err := ssh.NewServerConn(c, &s.ssh)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for n := range channels {
		if n.ChannelType() != "session" {
			n.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := n.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			is := r.Type == "subsystem" && len(r.Payload) > 4 && string(r.Payload[4:]) == "netconf"
			r.Reply(is, nil)
			if is {
				go ssh.DiscardRequests(requests)
				c.SetDeadline(time.Time{})
				s.session(channel)
				conn.Close()
				return
			}
		}
	}
}

// session serves a session until its end.
func (s *server) session(rw io.ReadWriter) {
	s.mu.Lock()
	s.last++
	x := &session{id: s.last, store: s.store, frames: newFrames(rw)}
	s.mu.Unlock()
	defer s.store.unlock(x.id)
	x.run()
}
