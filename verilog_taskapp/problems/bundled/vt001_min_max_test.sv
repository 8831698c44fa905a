// Bench of vt001_min_max: signed or unsigned minimum and maximum.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_min;
    int errortime_min;
    int errors_max;
    int errortime_max;
    int errors_equal;
    int errortime_equal;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [7:0] a;
  logic [7:0] b;
  logic       is_signed;
  wire  [7:0] min_ref;
  wire  [7:0] min_dut;
  wire  [7:0] max_ref;
  wire  [7:0] max_dut;
  wire        equal_ref;
  wire        equal_dut;

  RefModule good1 (
    .a(a),
    .b(b),
    .is_signed(is_signed),
    .min(min_ref),
    .max(max_ref),
    .equal(equal_ref)
  );

  TopModule top_module1 (
    .a(a),
    .b(b),
    .is_signed(is_signed),
    .min(min_dut),
    .max(max_dut),
    .equal(equal_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_min = min_ref ^ min_ref;
  wire        match_min = (min_dut ^ open_min) === (min_ref ^ open_min);
  wire  [7:0] open_max = max_ref ^ max_ref;
  wire        match_max = (max_dut ^ open_max) === (max_ref ^ open_max);
  wire        open_equal = equal_ref ^ equal_ref;
  wire        match_equal = (equal_dut ^ open_equal) === (equal_ref ^ open_equal);
  wire        tb_match = match_min && match_max && match_equal;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_min) begin
      if (stats1.errors_min == 0) stats1.errortime_min = $time;
      stats1.errors_min = stats1.errors_min + 1;
    end
    if (!match_max) begin
      if (stats1.errors_max == 0) stats1.errortime_max = $time;
      stats1.errors_max = stats1.errors_max + 1;
    end
    if (!match_equal) begin
      if (stats1.errors_equal == 0) stats1.errortime_equal = $time;
      stats1.errors_equal = stats1.errors_equal + 1;
    end
  end

  // The values around which signed and unsigned order differ.
  function [7:0] corner(input [2:0] index);
    case (index)
      3'd0: corner = 8'h00;
      3'd1: corner = 8'h01;
      3'd2: corner = 8'h7e;
      3'd3: corner = 8'h7f;
      3'd4: corner = 8'h80;
      3'd5: corner = 8'h81;
      3'd6: corner = 8'hfe;
      default: corner = 8'hff;
    endcase
  endfunction

  integer i;
  initial begin
    a <= 8'h00;
    b <= 8'h00;
    is_signed <= 1'b0;
    for (i = 0; i < 128; i = i + 1) @(negedge clk) begin
      a <= corner(i[2:0]);
      b <= corner(i[5:3]);
      is_signed <= i[6];
    end
    repeat (200) @(negedge clk) begin
      a <= $random;
      b <= $random;
      is_signed <= $urandom;
    end
    // Neighbours: equal, or one apart in a single bit.
    repeat (100) @(negedge clk) begin
      a <= $random;
      is_signed <= $random;
      @(negedge clk) b <= a ^ (8'd1 << ($urandom % 9));
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_min != 0)
      $display("Hint: Output 'min' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_min, stats1.errortime_min);
    else
      $display("Hint: Output 'min' has no mismatches.");
    if (stats1.errors_max != 0)
      $display("Hint: Output 'max' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_max, stats1.errortime_max);
    else
      $display("Hint: Output 'max' has no mismatches.");
    if (stats1.errors_equal != 0)
      $display("Hint: Output 'equal' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_equal, stats1.errortime_equal);
    else
      $display("Hint: Output 'equal' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
