// GroupGraph: what it says of paths is what a search of the whole graph says.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "dispatch/group_graph.h"

namespace {

using vkml::dispatch::GroupGraph;

/// The same graph, without any cleverness.
struct Model {
  std::vector<std::vector<int>> sources;
  std::vector<bool> merged;

  bool reaches(int from, int to, bool skip_direct) const {
    for (const int source : sources[static_cast<std::size_t>(from)]) {
      if (source == to) {
        if (!skip_direct) return true;
      } else if (reaches(source, to, false)) {
        return true;
      }
    }
    return false;
  }
  bool path_between(int a, int b) const { return reaches(a, b, true) || reaches(b, a, true); }

  void merge(int into, int from) {
    auto& target = sources[static_cast<std::size_t>(into)];
    auto& given = sources[static_cast<std::size_t>(from)];
    target.insert(target.end(), given.begin(), given.end());
    given.clear();
    merged[static_cast<std::size_t>(from)] = true;
    for (auto& list : sources) {
      for (int& source : list) source = source == from ? into : source;
    }
    std::erase(target, into);
  }
};

TEST(GroupGraph, AgreesWithASearchOfTheWholeGraph) {
  std::mt19937 generator(3);
  int joined = 0, refused = 0;
  for (int round = 0; round < 300; ++round) {
    GroupGraph graph;
    Model model;
    const auto live = [&] {
      std::vector<int> groups;
      for (int g = 0; g < static_cast<int>(model.sources.size()); ++g) {
        if (!model.merged[static_cast<std::size_t>(g)]) groups.push_back(g);
      }
      return groups;
    };
    for (int step = 0; step < 24; ++step) {
      const std::vector<int> groups = live();
      std::vector<int> sources;
      for (const int group : groups) {
        if (generator() % groups.size() < 2) sources.push_back(group);
      }
      model.sources.push_back(sources);
      model.merged.push_back(false);
      const int added = graph.add(sources);
      ASSERT_EQ(added, static_cast<int>(model.sources.size()) - 1);
      for (const int other : groups) {
        const bool path = model.path_between(added, other);
        ASSERT_EQ(graph.path_between(added, other), path) << "round " << round;
        if (path || model.merged[static_cast<std::size_t>(added)] || generator() % 3 != 0) continue;
        graph.merge(added, other);
        model.merge(added, other);
        ++joined;
      }
      for (const int a : live()) {
        for (const int b : live()) {
          if (a == b) continue;
          const bool path = model.path_between(a, b);
          refused += path ? 1 : 0;
          ASSERT_EQ(graph.path_between(a, b), path) << "round " << round;
        }
      }
    }
  }
  EXPECT_GT(joined, 100);
  EXPECT_GT(refused, 100);
}

TEST(GroupGraph, ManyJoinsAtOnePlaceFindRoom) {
  // Every join moves a group before the same one, which uses up the labels there.
  GroupGraph graph;
  const int base = graph.add({});
  int hub = graph.add(std::vector{base});
  for (int i = 0; i < 5000; ++i) {
    const int free = graph.add({});
    const int user = graph.add(std::vector{hub, free});
    ASSERT_FALSE(graph.path_between(user, hub));
    graph.merge(user, hub);
    hub = user;
  }
  EXPECT_EQ(graph.sources(hub).size(), 5001u);
}

TEST(GroupGraph, ALongSearchIsGivenUpWithYes) {
  GroupGraph graph;
  const int far = graph.add({});
  int last = graph.add({});
  for (int i = 0; i < 1000; ++i) last = graph.add(std::vector{last});
  EXPECT_TRUE(graph.path_between(graph.add(std::vector{last, far}), far));
}

}  // namespace
