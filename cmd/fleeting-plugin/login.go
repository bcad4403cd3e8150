package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

const maxPassword = 64 << 10

// nextServer is what to do about what is no registry.
const nextServer = "name the registry only: HOST or HOST:PORT, or https://HOST if it must have TLS; plain HTTP is --insecure-plain-http HOST"

// loginCmd has the flags of login.
type loginCmd struct {
	app                  *cli.App
	registry             *cli.RegistryFlags
	username, password   string
	stdin, token, helper bool
}

// newLoginCmd tries credentials and stores them.
func newLoginCmd(app *cli.App) *cobra.Command {
	c := &loginCmd{app: app}
	cmd := &cobra.Command{
		Use:   "login REGISTRY",
		Short: "Try credentials for a registry and store them",
		Long: `Try credentials against a registry. If the registry accepts them, store them where
docker and podman find them. Otherwise the stored ones stay.

The password is asked for on a terminal, or read with --password-stdin. With
https:// in front of it, a registry on a loopback address must have TLS.`,
		Example: `  fleeting-plugin login registry.example.com --username me
  echo "$TOKEN" | fleeting-plugin login registry.example.com --username me --password-stdin`,
		Args: cli.Args(1, 1),
	}
	c.registry = app.RegistryFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVarP(&c.username, "username", "u", "", "user `NAME`")
	flags.BoolVar(&c.stdin, "password-stdin", false, "read the password from standard input")
	flags.StringVarP(&c.password, "password", "p", "", "the `PASSWORD`; other users of this machine can see it")
	flags.BoolVar(&c.token, "identity-token", false, "what is read is an identity token, not a password")
	flags.BoolVar(&c.helper, "require-helper", false, "fail if no credential helper is configured, instead of storing the password in the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) }
	return cmd
}

func (c *loginCmd) run(cmd *cobra.Command, host string) error {
	if _, _, err := ociregistry.ParseServer(host); err != nil {
		return cli.Hint(cli.WithCode(err, cli.Usage), nextServer)
	}
	credential, err := c.credential(cmd.Context())
	if err != nil {
		return err
	}
	store, err := c.registry.Credentials(!c.helper)
	if err != nil {
		return err
	}
	client, err := c.registry.Client()
	if err != nil {
		return err
	}
	if err := store.Login(cmd.Context(), client, host, credential); err != nil {
		if errors.Is(err, ociregistry.ErrInvalid) {
			return cli.WithCode(err, cli.Usage)
		}
		if errors.Is(err, ociregistry.ErrUnauthorized) {
			return cli.Hint(err, "check the user name and the password; nothing was stored")
		}
		if errors.Is(err, ociregistry.ErrNoHelper) {
			return cli.Hint(err, "name a credential helper as credsStore in the file, or omit --require-helper")
		}
		return err
	}
	return c.app.Print(map[string]string{"registry": host, "username": c.username}, func(p *cli.Page) {
		p.Printf("logged in to %s\n", host)
	})
}

func (c *loginCmd) credential(ctx context.Context) (ociregistry.Credential, error) {
	if c.username == "" && !c.token {
		return ociregistry.Credential{}, cli.Usagef("no --username")
	}
	secret, err := c.secret(ctx)
	if err != nil {
		return ociregistry.Credential{}, err
	}
	if secret == "" {
		return ociregistry.Credential{}, cli.Usagef("an empty password")
	}
	if c.token {
		return ociregistry.Credential{IdentityToken: secret}, nil
	}
	return ociregistry.Credential{Username: c.username, Password: secret}, nil
}

func (c *loginCmd) secret(ctx context.Context) (string, error) {
	if c.password != "" {
		if c.stdin {
			return "", cli.Usagef("either --password or --password-stdin")
		}
		c.app.Warnf("a password on the command line can be seen by other users; use --password-stdin")
		return c.password, nil
	}
	if !c.stdin && c.app.CanAsk() {
		secret, err := c.app.ReadSecret(ctx, "Password")
		return string(secret), err
	}
	if !c.stdin {
		return "", cli.Usagef("no terminal to ask for the password: use --password-stdin")
	}
	content, err := cli.Await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(c.app.In, maxPassword)) })
	if err != nil {
		return "", err
	}
	text, err := textfile.UTF8(content)
	if err != nil {
		return "", cli.Hint(cli.WithCode(fmt.Errorf("standard input: %w", err), cli.Usage), "in Windows PowerShell: $OutputEncoding = [Text.UTF8Encoding]::new($false)")
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// newLogoutCmd forgets credentials.
func newLogoutCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout REGISTRY",
		Short: "Forget the credentials for a registry",
		Args:  cli.Args(1, 1),
	}
	registry := app.RegistryFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, _, err := ociregistry.ParseServer(args[0]); err != nil {
			return cli.Hint(cli.WithCode(err, cli.Usage), nextServer)
		}
		store, err := registry.Credentials(true)
		if err != nil {
			return err
		}
		if err := store.Logout(cmd.Context(), args[0]); err != nil {
			if errors.Is(err, ociregistry.ErrNotFound) {
				return cli.Hint(err, "write the registry as in: fleeting-plugin login REGISTRY; credentials in the environment are not stored")
			}
			return err
		}
		return app.Print(map[string]string{"registry": args[0]}, func(p *cli.Page) {
			p.Printf("logged out of %s\n", args[0])
		})
	}
	return cmd
}
