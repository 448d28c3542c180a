package ovsdb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/vxswitch/vxswitch/ovsdb/internal/server"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// An embedded is the server in the node. The Switch is its client by a connection inside the program.
type embedded struct {
	*server.Server
	cancel   context.CancelFunc
	managers sync.WaitGroup
}

// open opens the database and its listeners.
func (s *Switch) open() (*embedded, error) {
	c := &s.cfg
	var secure *tls.Config
	var addrs []server.Addr
	for _, l := range c.Listen {
		a, _ := server.ParseListen(l)
		addrs = append(addrs, a)
		if a.Secure && secure == nil {
			var err error
			if secure, err = c.secure(); err != nil {
				return nil, err
			}
		}
	}
	db := store.New(store.VTEP(), store.DefaultLimits)
	if c.Database != "" {
		opened, torn, err := store.Open(c.Database, store.VTEP(), store.DefaultLimits)
		if err != nil {
			return nil, fmt.Errorf("ovsdb: Config.Database: %w", err)
		}
		if db = opened; torn > 0 {
			s.log.Warn("the last transaction of the database was not written whole, and is lost", "file", c.Database, "bytes", torn)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &embedded{Server: server.New(db, s.log), cancel: cancel}
	if err := e.Listen(addrs, secure); err != nil {
		return nil, errors.Join(fmt.Errorf("ovsdb: Config.Listen: %w", err), e.close())
	}
	e.managers.Go(func() { e.Managers(ctx, c.managerTLS) })
	return e, nil
}

// managerTLS is secure for managers, which the database names.
func (c *Config) managerTLS() (*tls.Config, error) {
	if c.CA == "" {
		return nil, errors.New("a manager with ssl needs caFile, certFile and keyFile")
	}
	return c.secure()
}

// close ends all sessions but waits for what they are about.
func (e *embedded) close() error {
	e.cancel()
	e.managers.Wait()
	return e.Close()
}

// connect returns a connection with the database.
func (s *Switch) connect(ctx context.Context) (net.Conn, error) {
	if !s.cfg.embedded() {
		return s.cfg.dial(ctx)
	}
	if s.server == nil {
		e, err := s.open()
		if err != nil {
			return nil, err
		}
		s.server = e
	}
	return s.server.Pipe(), nil
}
