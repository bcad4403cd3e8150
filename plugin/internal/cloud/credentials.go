package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// credentials is all that is taken from clouds.yaml and the environment.
type credentials struct {
	auth      gophercloud.AuthOptions
	region    string
	iface     string            // public, internal or admin
	ifaces    map[string]string // of services that have one of their own
	overrides map[string]string
	tls       tlsFiles
}

// interfaceOf is the interface of a service.
func (c credentials) interfaceOf(service string) string {
	return cmp.Or(c.ifaces[service], c.iface)
}

// loadCredentials reads the entry anew.
func loadCredentials(opts Options) (credentials, cloudsFiles, error) {
	files, err := findClouds(opts.CloudsFile, opts.LookupEnv)
	if err != nil {
		return credentials{}, files, err
	}
	// What is written while they are read must not count as read.
	files.read = files.stamp()
	entry, err := readEntry(files, opts.Cloud)
	if err != nil {
		return credentials{}, files, err
	}
	creds, err := entry.credentials(opts.LookupEnv)
	if err != nil {
		return credentials{}, files, fmt.Errorf("%s: cloud %q: %w", files.clouds, opts.Cloud, err)
	}
	return creds, files, nil
}

// credentials checks an entry and reports all that is wrong with it.
func (e cloudsEntry) credentials(lookupEnv func(string) (string, bool)) (credentials, error) {
	region, regionErr := e.region(lookupEnv)
	iface, ifaceErr := e.endpointInterface(lookupEnv)
	auth, authErr := e.authOptions()
	if err := errors.Join(authErr, regionErr, ifaceErr); err != nil {
		return credentials{}, err
	}
	return credentials{
		auth: auth, region: region, iface: iface,
		overrides: map[string]string{compute: e.ComputeEndpoint, network: e.NetworkEndpoint, image: e.ImageEndpoint, volume: e.VolumeEndpoint},
		tls:       tlsFiles{ca: e.CACert, cert: e.Cert, key: e.Key, insecure: e.Verify != nil && !*e.Verify},
	}, nil
}

func (e cloudsEntry) region(lookupEnv func(string) (string, bool)) (string, error) {
	if region, ok := lookupEnv("OS_REGION_NAME"); ok && region != "" {
		return region, nil
	}
	switch {
	case e.RegionName != "" || len(e.Regions) == 0:
		return e.RegionName, nil
	case len(e.Regions) == 1:
		return e.Regions[0].Name, nil
	default:
		return "", errors.New("it lists several regions; choose one with region_name or OS_REGION_NAME")
	}
}

func (e cloudsEntry) endpointInterface(lookupEnv func(string) (string, bool)) (string, error) {
	chosen := cmp.Or(e.Interface, e.EndpointType)
	if value, ok := lookupEnv("OS_INTERFACE"); ok && value != "" {
		chosen = value
	}
	switch iface := strings.TrimSuffix(chosen, "URL"); iface {
	case "":
		return "public", nil
	case "public", "internal", "admin":
		return iface, nil
	default:
		return "", fmt.Errorf("interface %q is none of public, internal and admin", chosen)
	}
}

// authOptions makes gophercloud's options out of the auth section.
func (e cloudsEntry) authOptions() (gophercloud.AuthOptions, error) {
	if e.Auth == nil {
		return gophercloud.AuthOptions{}, errors.New("it has no auth section")
	}
	a := *e.Auth
	opts := gophercloud.AuthOptions{IdentityEndpoint: a.AuthURL}
	if a.AuthURL == "" {
		return opts, errors.New("auth.auth_url is missing")
	}
	switch e.AuthType {
	case "v3applicationcredential":
		return a.applicationCredential(opts)
	case "", "password", "v3password":
		if e.AuthType == "" && (a.ApplicationCredentialID != "" || a.ApplicationCredentialName != "") {
			return a.applicationCredential(opts)
		}
		return a.password(opts)
	default:
		return opts, fmt.Errorf("auth_type %q is not supported; use password or v3applicationcredential", e.AuthType)
	}
}

func (a authEntry) applicationCredential(opts gophercloud.AuthOptions) (gophercloud.AuthOptions, error) {
	opts.ApplicationCredentialID = a.ApplicationCredentialID
	opts.ApplicationCredentialSecret = a.ApplicationCredentialSecret
	if a.ApplicationCredentialSecret == "" {
		return opts, errors.New("auth.application_credential_secret is missing")
	}
	if a.ApplicationCredentialID != "" {
		return opts, nil
	}
	if a.ApplicationCredentialName == "" {
		return opts, errors.New("auth.application_credential_id is missing")
	}
	opts.ApplicationCredentialName = a.ApplicationCredentialName
	return a.user(opts)
}

func (a authEntry) password(opts gophercloud.AuthOptions) (gophercloud.AuthOptions, error) {
	opts, err := a.user(opts)
	if a.Password == "" {
		err = errors.Join(err, errors.New("auth.password is missing"))
	}
	opts.Password = a.Password
	projectID, projectName := cmp.Or(a.ProjectID, a.TenantID), cmp.Or(a.ProjectName, a.TenantName)
	switch {
	case projectID != "":
		opts.Scope = &gophercloud.AuthScope{ProjectID: projectID}
	case projectName == "":
		err = errors.Join(err, errors.New("auth.project_name or auth.project_id is missing"))
	default:
		opts.Scope = &gophercloud.AuthScope{
			ProjectName: projectName,
			DomainID:    cmp.Or(a.ProjectDomainID, a.DomainID),
			DomainName:  cmp.Or(a.ProjectDomainName, a.DomainName),
		}
		if opts.Scope.DomainID != "" {
			opts.Scope.DomainName = ""
		} else if opts.Scope.DomainName == "" {
			opts.Scope.DomainID = cmp.Or(a.DefaultDomain, "default")
		}
	}
	return opts, err
}

// user names the user by ID, or by name within a domain.
func (a authEntry) user(opts gophercloud.AuthOptions) (gophercloud.AuthOptions, error) {
	if a.UserID != "" {
		opts.UserID = a.UserID
		return opts, nil
	}
	if a.Username == "" {
		return opts, errors.New("auth.username or auth.user_id is missing")
	}
	opts.Username = a.Username
	opts.DomainID = cmp.Or(a.UserDomainID, a.DomainID)
	if opts.DomainID == "" {
		opts.DomainName = cmp.Or(a.UserDomainName, a.DomainName)
	}
	if opts.DomainID == "" && opts.DomainName == "" {
		opts.DomainID = cmp.Or(a.DefaultDomain, "default")
	}
	return opts, nil
}

// stamp tells whether the credentials changed on disk, or whether they can be
// read now that could not be before: who may read a file changes neither its
// size nor its time.
func (f cloudsFiles) stamp() string {
	var b strings.Builder
	for _, path := range []string{f.clouds, f.secure, f.public} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		file, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		_ = file.Close() // it was only looked at
	}
	return b.String()
}
