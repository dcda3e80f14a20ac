#include "runtime/tcp_rendezvous.hpp"

#include <string>
#include <utility>

#include "io/tcp_store.hpp"

namespace cais::runtime {
namespace {

class TcpRendezvous : public Rendezvous {
 public:
  explicit TcpRendezvous(std::unique_ptr<io::TcpStore> store) : store_(std::move(store)) {}
  Result<void> set(std::string_view key, std::string_view value) override {
    return store_->set(key, value);
  }
  Result<std::string> get(std::string_view key, Duration timeout) override {
    return store_->get(key, timeout);
  }

 private:
  std::unique_ptr<io::TcpStore> store_;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> make_tcp_rendezvous(std::string_view host_port, bool serve,
                                                        Duration timeout) {
  Result<std::unique_ptr<io::TcpStore>> store = io::TcpStore::open(host_port, serve, timeout);
  if (!store.ok()) return store.error();
  return std::unique_ptr<Rendezvous>(std::make_unique<TcpRendezvous>(std::move(store).value()));
}

}  // namespace cais::runtime
