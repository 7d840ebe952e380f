// Recursion, the list idiom, and an order in which C++ accepts the types.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "xdrgen/model.h"

namespace xdrgen {
namespace {

// What an optional, through any typedefs, points at; null for other types.
Named* pointee(const Type& type) {
  const Type& stripped = strip(type);
  return stripped.kind == Kind::Optional ? strip(*stripped.element).named : nullptr;
}

// The types that occur other than behind an optional.
std::set<const Named*> used_by_value(Model& model) {
  std::set<const Named*> result;
  const TypeVisitor note = [&](const Type& type) {
    const Type* at = &type;
    while (at->element != nullptr && at->kind != Kind::Optional) at = at->element;
    if (at->element == nullptr) result.insert(strip(*at).named);
  };
  for (Named* named : model.types) each_field(*named, note);
  for (Program& program : model.programs)
    for (Version& version : program.versions)
      for (Procedure& procedure : version.procedures) {
        note(*procedure.arguments);
        note(*procedure.results);
      }
  return result;
}

// The name, or what comes of it until nothing else is called so.
std::string unused_name(const Model& model, std::string name) {
  std::set<std::string> used;
  for (const Constant& constant : model.constants) used.insert(constant.name);
  for (const Named* named : model.types) {
    used.insert(named->name);
    if (const auto* from = std::get_if<Enum>(&named->body))
      for (const Enumerator& one : from->enumerators) used.insert(one.name);
  }
  for (const Program& program : model.programs)
    for (const Version& version : program.versions)
      for (const Procedure& procedure : version.procedures) used.insert(procedure.type);
  while (used.contains(name)) name += '_';
  return name;
}

// What is written where the pointer to the next node stands: a list of the nodes `others`. Typedefs
// of such pointers go on to stand for a list with its first node, but their item is that of this
// one.
void point_at_others(Model& model, Field& next, Named& others) {
  const Type* pointer = next.type;
  while (pointer->kind == Kind::Alias) {
    const Field& named = std::get<Alias>(pointer->named->body).field;
    next.item = named.item;
    pointer = named.type;
  }
  Type& element = model.type_store.emplace_back();
  element.kind = Kind::Struct;
  element.named = &others;
  Type& list = model.type_store.emplace_back();
  list.kind = Kind::List;
  list.element = &element;
  list.eligible = pointer->eligible;
  next.type = &list;
}

// A list whose first node stands by value keeps its last member: the list of the other nodes, which
// are a type of their own, without that member.
void split_head(Model& model, Named& head) {
  auto& from = std::get<Struct>(head.body);
  Named& others = model.named_store.emplace_back();
  others.name = unused_name(model, head.name + "_" + from.fields.back().name);
  others.where = head.where;
  others.body = Struct{{from.fields.begin(), from.fields.end() - 1}};
  others.list_node = true;
  point_at_others(model, from.fields.back(), others);
  model.types.insert(std::ranges::find(model.types, &head), &others);
}

// RFC 4506 4.19's linked list: a struct whose last member points to the next of its kind.
void find_lists(Model& model) {
  const std::set<const Named*> by_value = used_by_value(model);
  for (Named* named : std::vector(model.types)) {
    auto* structure = std::get_if<Struct>(&named->body);
    if (structure == nullptr || pointee(*structure->fields.back().type) != named) continue;
    const auto points_back = [&](const Field& f) { return pointee(*f.type) == named; };
    if (std::ranges::count_if(structure->fields, points_back) > 1) continue;
    if (by_value.contains(named)) {
      split_head(model, *named);
    } else {
      named->list_node = true;
      structure->fields.pop_back();
    }
  }
  for (Type& type : model.type_store)
    if (type.kind == Kind::Optional && strip(*type.element).named != nullptr &&
        strip(*type.element).named->list_node)
      type.kind = Kind::List;
}

// Tarjan's strongly connected components over "contains, in whatever way".
class Recursion {
 public:
  explicit Recursion(Model& model) {
    for (Named* named : model.types)
      if (!index_.contains(named)) visit(*named);
  }

 private:
  void visit(Named& named) {
    const std::size_t index = index_.size();
    index_[&named] = index;
    low_[&named] = index;
    stack_.push_back(&named);
    each_field(named, [&](const Type& type) { follow(named, type); });
    if (low_[&named] != index) return;
    const auto start = std::ranges::find(stack_, &named);
    if (stack_.end() - start > 1)
      std::for_each(start, stack_.end(), [](Named* n) { n->recursive = true; });
    for (auto at = start; at != stack_.end(); ++at) done_.insert(*at);
    stack_.erase(start, stack_.end());
  }

  void follow(Named& from, const Type& type) {
    const Type* at = &type;
    while (at->element != nullptr) at = at->element;
    Named* to = at->named;
    if (to == nullptr || done_.contains(to)) return;
    if (to == &from) from.recursive = true;
    if (!index_.contains(to)) visit(*to);
    low_[&from] = std::min(low_[&from], low_[to]);
  }

  std::map<Named*, std::size_t> index_, low_;
  std::vector<Named*> stack_;
  std::set<Named*> done_;
};

// A type after all it needs complete: what it holds by value, in arrays and in optionals that are
// not boxed. Everything else needs names only: structs and unions are declared ahead, typedefs are
// not.
class Order {
 public:
  explicit Order(Model& model) {
    for (Named* named : model.types) visit(*named);
    model.types = std::move(result_);
  }

 private:
  void visit(Named& named) {
    if (done_.contains(&named)) return;
    if (!open_.insert(&named).second)
      complain(named.where, fmt::format("'{}' contains itself", named.name));
    const bool alias = std::holds_alternative<Alias>(named.body);
    each_field(named, [&](const Type& type) { alias ? declare(type) : complete(type); });
    open_.erase(&named);
    done_.insert(&named);
    result_.push_back(&named);
  }

  void declare(const Type& type) {
    const Type* at = &type;
    while (at->element != nullptr) at = at->element;
    if (at->kind == Kind::Alias || at->kind == Kind::Enum) visit(*at->named);
  }

  void complete(const Type& type) {
    declare(type);
    const Type& stripped = strip(type);
    if (stripped.named != nullptr) visit(*stripped.named);
    const bool optional = stripped.kind == Kind::Optional && !is_boxed(stripped);
    if (stripped.kind == Kind::Array || optional) complete(*stripped.element);
  }

  std::set<Named*> open_, done_;
  std::vector<Named*> result_;
};

}  // namespace

void each_field(const Named& named, const TypeVisitor& visit) {
  if (const auto* alias = std::get_if<Alias>(&named.body)) visit(*alias->field.type);
  if (const auto* structure = std::get_if<Struct>(&named.body))
    for (const Field& field : structure->fields) visit(*field.type);
  if (const auto* unions = std::get_if<Union>(&named.body)) {
    visit(*unions->discriminant.type);
    for (const Arm& arm : unions->arms) visit(*arm.field.type);
  }
}

void analyse(Model& model) {
  find_lists(model);
  Recursion{model};
  Order{model};
}

}  // namespace xdrgen
