# Writes the configuration files. Sourced by up.
# shellcheck shell=bash disable=SC2034,SC2154 # its variables are those of up

db() { printf 'mysql+pymysql://root@localhost/%s?unix_socket=%s/mysql.sock' "$1" "$RUN"; }
TRANSPORT=rabbit://guest:guest@127.0.0.1:$RABBIT_PORT/

auth_token() { # the credentials of the services, under section $1
  cat <<EOT
[$1]
auth_url = http://127.0.0.1:$KEYSTONE_PORT/v3
www_authenticate_uri = http://127.0.0.1:$KEYSTONE_PORT/v3
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = service
username = service
password = $SERVICE_PASSWORD
region_name = RegionOne
service_token_roles = service
service_token_roles_required = true
EOT
}

cat > "$ETC/keystone.conf" <<EOT
[DEFAULT]
use_stderr = true
notification_driver = noop
[database]
connection = $(db keystone)
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $LAB/keystone/fernet
[fernet_receipts]
key_repository = $LAB/keystone/fernet
[credential]
key_repository = $LAB/keystone/credential
[identity]
password_hash_rounds = 4
[cache]
enabled = true
backend = dogpile.cache.memory
[oslo_messaging_notifications]
driver = noop
EOT

cat > "$ETC/placement.conf" <<EOT
[DEFAULT]
use_stderr = true
[api]
auth_strategy = keystone
[placement_database]
connection = $(db placement)
max_pool_size = 20
$(auth_token keystone_authtoken)
EOT

cat > "$ETC/glance-api.conf" <<EOT
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $GLANCE_PORT
workers = 0
enabled_backends = file:file
show_multiple_locations = false
[database]
connection = $(db glance)
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $LAB/glance/images
[os_glance_staging_store]
filesystem_store_datadir = $LAB/glance/staging
[os_glance_tasks_store]
filesystem_store_datadir = $LAB/glance/tasks
[paste_deploy]
flavor = keystone
config_file = $LAB/lib/paste.ini
[oslo_messaging_notifications]
driver = noop
[oslo_concurrency]
lock_path = $LAB/tmp
$(auth_token keystone_authtoken)
EOT
mkdir -p "$LAB/glance/images" "$LAB/glance/staging" "$LAB/glance/tasks"

cat > "$ETC/neutron.conf" <<EOT
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $NEUTRON_PORT
api_workers = 0
api_paste_config = $LAB/lib/paste.ini
state_path = $LAB/neutron
auth_strategy = keystone
core_plugin = ml2
service_plugins = router
transport_url = fake://
# few requests at a time: many of them fight over the same rows
wsgi_default_pool_size = 6
wsgi_keep_alive = false
dhcp_agent_notification = false
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = true
global_physnet_mtu = 1500
allow_overlapping_ips = true
max_allowed_address_pair = 10
[ml2]
type_drivers = local,flat,vxlan
tenant_network_types = vxlan
mechanism_drivers = lab
extension_drivers = port_security
[ml2_type_flat]
flat_networks = *
[ml2_type_vxlan]
vni_ranges = 1:10000
[quotas]
quota_network = 100
quota_subnet = 100
quota_port = 500
[database]
connection = $(db neutron)
max_pool_size = 30
[oslo_concurrency]
lock_path = $LAB/tmp
[oslo_messaging_notifications]
driver = noop
$(auth_token keystone_authtoken)
$(auth_token nova)
$(auth_token placement)
EOT
mkdir -p "$LAB/neutron"

cat > "$ETC/nova.conf" <<EOT
[DEFAULT]
use_stderr = true
host = controller
my_ip = 127.0.0.1
state_path = $LAB/nova
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $NOVA_PORT
osapi_compute_workers = 1
transport_url = $TRANSPORT
compute_driver = labfake.LabDriver
reclaim_instance_interval = ${OPENSTACK_LAB_RECLAIM_SECONDS:-0}
allow_resize_to_same_host = true
instance_usage_audit = false
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
service_down_time = 120
report_interval = 15
sync_power_state_interval = 60
max_concurrent_builds = 4
executor_thread_pool_size = 16
initial_disk_allocation_ratio = 1.0
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $LAB/lib/paste.ini
[api_database]
connection = $(db nova_api)
max_pool_size = 30
[database]
connection = $(db nova)
max_pool_size = 30
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 2
max_placement_results = 100
[quota]
instances = 20
cores = 40
ram = 102400
[glance]
endpoint_override = http://127.0.0.1:$GLANCE_PORT
num_retries = 3
[cinder]
catalog_info = volumev3::publicURL
os_region_name = RegionOne
cross_az_attach = true
[vnc]
enabled = false
[notifications]
notification_format = unversioned
[oslo_concurrency]
lock_path = $LAB/tmp
[oslo_messaging_notifications]
driver = noop
$(auth_token keystone_authtoken)
$(auth_token neutron)
$(auth_token placement)
$(auth_token service_user)
send_service_user_token = true
EOT
# [cinder] and [glance] take the same credentials where Nova acts by itself
auth_token cinder | tail -n +2 > "$LAB/tmp/cinder-auth"
sed -i "/^catalog_info = volumev3/r $LAB/tmp/cinder-auth" "$ETC/nova.conf"
mkdir -p "$LAB/nova"
for c in "${COMPUTES[@]}"; do
  printf '[DEFAULT]\nhost = %s\nstate_path = %s/nova/%s\n' "$c" "$LAB" "$c" \
    > "$ETC/nova-$c.conf"
  mkdir -p "$LAB/nova/$c/instances"
done

cat > "$ETC/cinder.conf" <<EOT
[DEFAULT]
use_stderr = true
my_ip = 127.0.0.1
host = controller
state_path = $LAB/cinder
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = $CINDER_PORT
osapi_volume_workers = 1
api_paste_config = $LAB/lib/paste.ini
auth_strategy = keystone
transport_url = $TRANSPORT
enabled_backends = lab
default_volume_type = lab
glance_api_servers = http://127.0.0.1:$GLANCE_PORT
image_conversion_dir = $LAB/cinder/conversion
quota_volumes = 2000
quota_gigabytes = 100000
[lab]
volume_driver = labvolume.LabVolumeDriver
volume_backend_name = lab
[database]
connection = $(db cinder)
[oslo_concurrency]
lock_path = $LAB/tmp
[oslo_messaging_notifications]
driver = noop
$(auth_token keystone_authtoken)
$(auth_token nova)
$(auth_token service_user)
send_service_user_token = true
EOT
mkdir -p "$LAB/cinder/conversion"
